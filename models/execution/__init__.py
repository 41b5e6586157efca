"""Execution of runs: admission, claims and commits of steps, and recovery."""
