"""States in which steps, questions and runs end, as texts of the record."""

ENDED_STEPS = ("finished", "failed", "cancelled")
"""Final states of steps."""

OPEN_STEPS = ("waiting", "ready", "running", "batched", "blocked")
"""States of steps that haven't ended."""

ENDED_QUESTIONS = ("finished", "failed", "cancelled")
"""Final statuses of questions."""

CLOSED_RUNS = ("active", "paused", "cancelled")
"""Desired states in which a run may be closed."""

PRUNED = "pruned"
"""Desired state of a run that is being removed for good."""
