"""Experiments: their files, the schedule of their runs, and its conduct."""
