"""Paragraphs and demonstrations: stored once by digest, before a step refers to them."""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import Connection, Executable

from cotrail.core.actions.read import Read
from cotrail.core.actions.reason import Reason
from cotrail.core.encoding import paragraphs_of
from cotrail.core.history import Recorded, Step
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Demonstrations
from cotrail.core.results import Retrieved
from models.execution.statements import (
    LOCKED_DEMONSTRATIONS,
    LOCKED_PARAGRAPHS,
    NEW_DEMONSTRATIONS,
    NEW_PARAGRAPHS,
    NEW_REFERENCES,
)
from models.records.runs import RunPlan
from models.schema.rows import Rows

CHUNK = 500
"""How many rows a statement takes at most."""


class Contents:
    """What the next steps of questions refer to, and neither a search found nor the run brought: systems made it."""

    def __init__(self) -> None:
        self._paragraphs: dict[str, Paragraph] = {}
        self._demonstrations: dict[str, Demonstrations] = {}
        self._references: Rows = []

    def add(self, question_id: int, following: Sequence[Step], history: Sequence[Recorded], plan: RunPlan) -> None:
        """What the steps of a question refer to, whose history and run these are."""
        made = _made(following, history)
        self._references += ({"question_id": question_id, "digest": digest} for digest in made)
        self._paragraphs |= made
        self._demonstrations |= _brought(following, plan)

    def save(self, connection: Connection) -> None:
        """Stores what isn't there yet."""
        save_paragraphs(connection, self._paragraphs)
        save_demonstrations(connection, self._demonstrations)
        if self._references:
            connection.execute(NEW_REFERENCES, {"rows": self._references})


def save_paragraphs(connection: Connection, made: Mapping[str, Paragraph]) -> None:
    """Stores paragraphs by digest, in one order always, as two who store the same ones wait for each other."""
    rows = [{"digest": digest, "title": made[digest].title, "text": made[digest].text} for digest in sorted(made)]
    for start in range(0, len(rows), CHUNK):
        _keep(connection, NEW_PARAGRAPHS, LOCKED_PARAGRAPHS, rows[start : start + CHUNK])


def save_demonstrations(connection: Connection, shots: Mapping[str, Demonstrations]) -> None:
    """Stores demonstrations by digest."""
    rows = [{"digest": digest, "body": msgspec.to_builtins(shots[digest])} for digest in sorted(shots)]
    _keep(connection, NEW_DEMONSTRATIONS, LOCKED_DEMONSTRATIONS, rows)


def _keep(connection: Connection, store: Executable, lock: Executable, rows: Rows) -> None:
    """Stores what isn't there, and keeps all of it from being pruned before this transaction has referred to it.

    What this transaction stores nobody else sees yet; what was there has to be locked, and may be gone by then.
    """
    while rows:
        stored = set(connection.execute(store, {"rows": rows}).scalars())
        if there := [row["digest"] for row in rows if row["digest"] not in stored]:
            stored.update(connection.execute(lock, {"digests": there}).scalars())
        rows = [row for row in rows if row["digest"] not in stored]


def _brought(following: Sequence[Step], plan: RunPlan) -> dict[str, Demonstrations]:
    """The demonstrations that steps refer to and that aren't the run's: its system brought them."""
    known = {shots.digest for shots in plan.shots.values()}
    prompts = [step.action.prompt for step in following if isinstance(step.action, Reason | Read)]
    return {
        prompt.demonstrations.digest: prompt.demonstrations
        for prompt in prompts
        if prompt.demonstrations.digest not in known
    }


def _made(following: Sequence[Step], history: Sequence[Recorded]) -> dict[str, Paragraph]:
    """The paragraphs that steps refer to and that none of the question's searches found: its system made them."""
    # By the objects themselves, as a replay hands them through: most of what was found needs no digest here.
    found = {
        id(hit.paragraph) for record in history if isinstance(record.outcome, Retrieved) for hit in record.outcome.hits
    }
    referred = (paragraph for step in following for paragraph in paragraphs_of(step.action))
    return {paragraph.digest: paragraph for paragraph in referred if id(paragraph) not in found}
