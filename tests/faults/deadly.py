"""What makes a question deadly to the worker of `tests.faults.frail_worker`; that one changes workers by its import."""

DEADLY = "deadly"
