"""Tuning of the C library's memory allocator for workers."""

TUNED = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
"""The environment that a worker is started with: it turns glibc's per-thread caches off. Each thread would keep up to
seven freed pieces of every size; a hundred threads fill that slowly, and the process looks as if it leaked."""
