"""All operations: importing this module imports those that define them."""

from importlib import import_module

from cotrail.services.operations.operation import OPERATIONS as _DEFINED

MODULES = (
    *("access.projects", "access.tokens"),
    "diagnosing",
    *("library.corpora", "library.datasets", "library.models", "library.systems", "library.uploaded_files"),
    "library.uploads",
    *("results.annotations", "results.asking", "results.auditing", "results.cause_labels"),
    *("results.causes", "results.comparing", "results.experiment_reports"),
    *("results.export_formats", "results.exporting", "results.judges"),
    *("results.paired_questions", "results.plans", "results.questions"),
    *("results.repeated_steps", "results.reports.run_report", "results.runs", "results.scoring"),
    *("results.steps", "results.summarizing", "results.verdicts"),
    *("runs.control", "runs.experiments", "runs.following", "runs.forking", "runs.jobs"),
    *("runs.judging", "runs.labels", "runs.repeating", "runs.submission", "runs.watching", "runs.workers"),
)
"""The modules of services that define operations."""

for _module in MODULES:
    import_module(f"cotrail.services.{_module}")

OPERATIONS = dict(sorted(_DEFINED.items()))
"""The operations by their names, in the order of these."""
