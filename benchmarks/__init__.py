"""Benchmarks; each compares its contenders in one run on one machine."""
