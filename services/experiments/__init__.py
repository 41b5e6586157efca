"""Experiments: the papers' protocols as schedules of runs, and their conduct."""
