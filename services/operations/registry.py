"""All operations: importing this module imports those that define them."""

from importlib import import_module

from cotrail.services.operations.operation import OPERATIONS as OPERATIONS

MODULES = (
    "runs",
    "uploads",
    "jobs",
    "corpora",
    "knowledge",
    "models",
    "systems",
    "datasets",
    "workers",
    "experiments",
)
"""The modules beside this one that define operations."""

for _module in MODULES:
    import_module(f"cotrail.services.operations.{_module}")
