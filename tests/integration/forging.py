"""Bundles forged with knowledge of how digests are computed."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby

from cotrail.audit.question_sequence import MerkleTree
from cotrail.audit.records import Row, head_of, read_record, text, write_record
from cotrail.audit.row_digests import (
    earlier_attempts,
    question_digest,
    question_opened,
    run_digest,
    run_opened,
    step_digest,
)


def resealed(lines: Sequence[bytes]) -> list[bytes]:
    """The lines with every digest recomputed, as by a forger who may write to the whole store."""
    records = [read_record(line, number) for number, line in enumerate(lines[:-1], start=1)]
    tables: dict[str, list[Row]] = defaultdict(list)
    for record in records:
        tables[record.table].append(record.row)
    [run], experiment = tables["runs"], next(iter(tables["experiments"]), None)
    run["opened"] = run_opened(run, experiment)
    tree = MerkleTree()
    for question in tables["questions"]:
        _seal_question(question, text(run, "opened"), tables)
        tree.add(question["digest"] or "")
    run["digest"] = run_digest(run, tree.root()) if run["digest"] else None
    return [*map(write_record, records), lines[-1]]


def _seal_question(question: Row, opened: str, tables: dict[str, list[Row]]) -> None:
    question["opened"] = asked = question_opened(question, opened)
    digests: list[str] = []
    own = [step for step in tables["steps"] if step["question_id"] == question["id"]]
    for _, batch in groupby(own, key=lambda step: step["previous"]):
        head = head_of(asked, digests)
        for step in batch:
            step["previous"] = head
            attempts = [attempt for attempt in tables["attempts"] if attempt["step_id"] == step["id"]]
            step["digest"] = step_digest(step, earlier_attempts(step, attempts)) if step["digest"] else None
            digests.append(step["digest"] or "")
    question["digest"] = question_digest(question, head_of(asked, digests)) if question["digest"] else None
