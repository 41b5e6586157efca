"""What makes a question deadly to the worker of `tests.faults.frail_worker`, which changes workers where it is imported."""

DEADLY = "deadly"
