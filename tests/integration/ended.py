"""Runs that are put into the store as if they had ended, with the details of their answers."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Engine, update

from benchmarks.contenders.cotrail import submission
from cotrail.core.questions import Question
from cotrail.models.commands.submission import submit
from cotrail.models.schema.seals import amending
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.tables import questions, runs
from cotrail.systems.registry import find_system


def end_run(
    engine: Engine,
    asked: Sequence[Question],
    details: Sequence[Struct | dict[str, Any] | None],
    *,
    answer: str = "yes",
    run_id: str = "ended",
    system: str = "ircot",
    **changes: Any,
) -> str:
    """A run whose questions have ended with these details; changes: of what is submitted. Returns its id."""
    submit(engine, replace(submission(), id=run_id, provenance={"cotrail": "of a test"}, **changes), asked, find_system)
    version = find_system(system).version
    with engine.begin() as connection:
        amending(connection)
        as_system = {"system": system, "system_version": version, "settings": {}}
        connection.execute(update(runs).where(runs.c.id == run_id).values(**as_system))
        for question, each in zip(asked, details, strict=True):
            of_run = questions.c.run_id == run_id, questions.c.key == question.id
            ended = {"status": QuestionStatus.FINISHED, "answer": answer, "weighing": msgspec.to_builtins(each)}
            connection.execute(update(questions).where(*of_run).values(sentences=[], collected=[], **ended))
    return run_id
