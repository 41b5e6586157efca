"""Executing runs: admission, claims and commits of steps, and the recovery of what got lost."""
