"""The text that makes a question deadly to `tests.faults.frail_worker`, whose import already changes a worker."""

DEADLY = "deadly"
