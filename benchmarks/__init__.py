"""Benchmarks: each compares in one run on one machine."""
