"""What of the database the digests cover: every table and every column, each in exactly one place.

A column that a later version adds has to be named here, which a test holds.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

from cotrail.audit.records import COLUMNS

Cover = Literal["sealed", "derived", "not covered"]
"""`sealed`: a digest covers it, or `verify` checks it against what one covers. `derived`: it was computed from what is
sealed, and `verify` computes it again. `not covered`: nothing shows whether it was changed."""

DERIVED: Mapping[str, tuple[str, ...]] = {
    "question_summaries": (
        *("question_id", "run_id", "version", "outcome", "cause", "f1", "recall", "scores", "limited", "steps"),
        *("retries", "tokens", "milliseconds", "cost", "graded", "paid"),
    ),
    "run_summaries": ("counts", "scores"),
}
"""What the viewer, lists and standings show; `graded` and `paid` the database computes itself."""

NOT_COVERED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "whose a run is, and how its work is steered": {
        "experiments": ("project",),
        "runs": ("project", "served", "batched", "asked"),
        "questions": ("changed_in",),
        "steps": ("ended_in",),
        "run_labels": ("run_id", "name", "tags"),
        "run_consumption": ("run_id", "steps", "tokens", "seconds", "money", "raised"),
        "run_summaries": ("run_id", "version", "digest", "complete", "through_at", "through_id"),
        "made_paragraphs": ("question_id", "digest"),
    },
    "people's later judgements": {
        "annotations": ("question_id", "position", "annotator", "run_id", "is_true", "note", "created_at"),
        "cause_labels": ("question_id", "annotator", "run_id", "cause", "note", "created_at"),
    },
    "batches under way, of which the steps hold what came": {
        "batches": (
            *("key", "model_name", "state", "sender", "lines", "digest", "provider_id", "created_at", "sent_at"),
            *("checked_at", "missing_since", "expires_at", "ended_at", "done", "answered", "unanswered", "unneeded"),
            *("too_large", "problem"),
        ),
        "batch_items": (
            *("step_id", "model_name", "body", "batch", "answers", "since", "returned", "lost", "lost_tokens"),
        ),
    },
    "the service": {
        "activities": ("id", "at", "project", "actor", "token_id", "operation", "subject", "status", "request_id"),
        "deployment": ("one", "release", "revision", "format", "broker", "broker_address"),
        "idempotency_keys": ("project", "key", "request", "made", "created_at"),
        "jobs": (
            *("id", "project", "kind", "request", "state", "progress", "failures", "result", "error", "created_at"),
            *("started_at", "finished_at", "epoch", "worker", "lease_until"),
        ),
        "projects": ("name", "created_at", "corpora", "models", "open_questions", "money", "stored_bytes"),
        "tokens": (
            *("id", "project", "name", "scopes", "digest", "person", "created_at", "created_by", "expires_at"),
            *("revoked_at", "used_at"),
        ),
        "webhook_deliveries": (
            *("id", "run_id", "endpoint", "event", "created_at", "attempts", "next_at", "delivered_at", "problem"),
        ),
    },
}
"""What no digest covers, by what it is."""

_IN_BUNDLES = ("bundle", "prompts", "end")
"""Tables that only bundles have."""


def coverage() -> Iterator[tuple[str, Cover, tuple[str, ...]]]:
    """Each table's columns that are covered alike."""
    for table, columns in COLUMNS.items():
        if table not in _IN_BUNDLES:
            yield table, "sealed", columns
    for table, columns in DERIVED.items():
        yield table, "derived", columns
    for tables in NOT_COVERED.values():
        for table, columns in tables.items():
            yield table, "not covered", columns


def described() -> str:
    """The coverage as the table of docs/audit.md."""
    what = {table: meaning for meaning, tables in NOT_COVERED.items() for table in tables}
    lines = ["| table | | columns |", "| --- | --- | --- |"]
    for table, cover, columns in coverage():
        said = f"{cover}: {what[table]}" if cover == "not covered" else cover
        lines.append(f"| `{table}` | {said} | {', '.join(f'`{each}`' for each in columns)} |")
    return "\n".join(lines)
