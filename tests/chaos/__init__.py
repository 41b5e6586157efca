"""Chaos: a real stack under a seeded schedule of faults (docs/faults.md). `python -m tests.chaos --seed 7`."""
