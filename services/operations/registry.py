"""All operations: importing this module imports those that define them."""

from importlib import import_module

from cotrail.services.operations.operation import OPERATIONS as OPERATIONS

MODULES = (
    "activities",
    "annotations",
    "asking",
    "audits",
    "cause_labels",
    "comparisons",
    "corpora",
    "datasets",
    "errors",
    "experiments",
    "exports",
    "forks",
    "jobs",
    "judging",
    "knowledge",
    "live",
    "models",
    "plans",
    "progress",
    "projects",
    "pruning",
    "questions",
    "repeats",
    "replays",
    "reports",
    "rethinking",
    "runs",
    "scores",
    "summaries",
    "systems",
    "tokens",
    "uploads",
    "verdicts",
    "whoami",
    "workers",
)
"""The modules beside this one that define operations."""

for _module in MODULES:
    import_module(f"cotrail.services.operations.{_module}")
