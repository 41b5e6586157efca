"""All operations: importing this module imports those that define them."""

from importlib import import_module

from cotrail.services.operations.operation import OPERATIONS as OPERATIONS

MODULES = (
    "annotations",
    "audits",
    "cause_labels",
    "comparisons",
    "errors",
    "exports",
    "forks",
    "judging",
    "plans",
    "progress",
    "pruning",
    "questions",
    "repeats",
    "reports",
    "replays",
    "runs",
    "scores",
    "uploads",
    "verdicts",
)
"""The modules beside this one that define operations."""

for _module in MODULES:
    import_module(f"cotrail.services.operations.{_module}")
