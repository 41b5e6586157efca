"""Columns that the digests of the record cover, so that anyone can recompute them.

A digest is the SHA-256 of a JSON array of texts, as Python's `json.dumps(texts, ensure_ascii=False)` writes it: each
column as PostgreSQL writes it, times in UTC as `2026-01-31T23:59:59.000001Z`, NULL as null.

    run.opened       its experiment's columns, its configuration
    question.opened  run.opened, the question as it was submitted
    step.previous    the head of the question before the steps that were yielded together with this one
    step.digest      every column, `previous` among them; its earlier attempts
    question.digest  every column, its head
    run.digest       every column, the root of the tree over its questions' digests (`cotrail.audit.question_sequence`)

The head of a question is the SHA-256 of `question.opened` and its ended steps' digests in sequence, written one behind
the other.
The columns are listed here, apart from the tables' definitions: they are the record's format (`records.FORMAT`), which
a further column of a table alone doesn't change.
"""

from collections.abc import Iterable
from hashlib import sha256

EXPERIMENT = ("id", "created_at", "plan")

RUN_OPENED = (
    *("id", "created_at", "experiment_id", "cell", "reuse", "size", "origin", "forked_at"),
    *("system", "system_version", "settings", "dataset", "corpus", "corpus_revision", "knowledge"),
    *("model_name", "model", "embedder_name", "embedder", "entailer_name", "entailer"),
    *("profile", "temperature", "seed", "demonstrations", "provenance"),
)
"""A run's configuration: the columns that never change."""

RUN = (*RUN_OPENED, "opened", "desired_state", "priority")

QUESTION_OPENED = ("run_id", "position", "key", "text", "answers", "gold", "pinned", "evidence", "kind", "judged")
"""A question as it was submitted."""

QUESTION = (
    *("id", *QUESTION_OPENED, "opened"),
    *("status", "answer", "sentences", "collected", "weighing", "reason", "ended_by", "halted", "finished_at"),
)

STEP = (
    *("id", "run_id", "question_id", "sequence", "kind", "fingerprint", "shared_in", "adopted_from", "request"),
    *("state", "epoch", "created_at", "sent_at", "not_before", "worker", "lease_until", "started_at", "finished_at"),
    *("result", "failure", "prompt_tokens", "cached_prompt_tokens", "generated_tokens", "milliseconds"),
    *("edit", "previous"),
)

ATTEMPT = ("step_id", "epoch", "worker", "started_at", "ended_at", "outcome", "error")

TIMES = frozenset({"created_at", "sent_at", "not_before", "lease_until", "started_at", "finished_at", "ended_at"})
"""The columns that are times."""

TIME = 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
"""Their format for PostgreSQL's `to_char`."""


def head_of(opened: str, digests: Iterable[str]) -> str:
    """A question's head: the digest over all that was recorded of it so far."""
    return sha256("".join((opened, *digests)).encode()).hexdigest()


def heads_of(opened: str, digests: Iterable[str]) -> list[str]:
    """All heads that a question has had, the first one before its first step."""
    hashed = sha256(opened.encode())
    heads = [hashed.hexdigest()]
    for digest in digests:
        hashed.update(digest.encode())
        heads.append(hashed.hexdigest())
    return heads
