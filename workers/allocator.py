"""How the C library is to hand out a worker's memory."""

TUNED = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
"""The environment that a worker is started with. Otherwise each thread keeps what it frees, up to seven pieces of every
size: a hundred threads take a long while to fill that, and the process looks as if it leaked."""
