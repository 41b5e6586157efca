"""The questions that compared runs share, and where they stand."""

from collections.abc import Mapping, Sequence
from itertools import takewhile

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.printable_text import cut
from cotrail.errors import InputError
from cotrail.models.queries.asked_questions import AskedQuestion, read_asked
from cotrail.models.queries.runs import RunRecord, read_run, resolve_run

UNTIL = "until"
"""Where a run's provenance has the rule by which it stopped asking questions."""

QUOTED = 60
"""Characters of a question in a message."""


class Standing(Struct, frozen=True, kw_only=True):
    """How far a run is.

    questions: all of its own, of which `ended` have an answer or failed, and no other compared run has those `alone`.
    until: the rule by which it stops asking questions, empty where it has none.
    """

    questions: int
    ended: int
    alone: int
    until: str

    @property
    def is_fixed(self) -> bool:
        """Return whether its number of questions was fixed beforehand: all have ended, and no rule stopped it."""
        return self.ended == self.questions and not self.until


class SharedQuestions(Struct, frozen=True, kw_only=True):
    """The questions of all compared runs.

    compared: those that are compared, in the order of the first run; left_out: how many aren't, since one before them,
        or they themselves, haven't ended in every run. None is left out where every run `is_fixed`.
    standings: of the runs, by id.
    """

    compared: Mapping[str, AskedQuestion]
    left_out: int
    standings: Mapping[str, Standing]

    @property
    def are_fixed(self) -> bool:
        """Return whether their number was fixed beforehand."""
        return all(standing.is_fixed for standing in self.standings.values())


def compared_records(connection: Connection, runs: Sequence[str]) -> list[RunRecord]:
    """The runs that a person means; raises InputError where they are fewer than two, or one is named twice."""
    ids = [resolve_run(connection, run) for run in runs]
    if len(set(ids)) < len(ids) or len(ids) < 2:
        raise InputError("a comparison needs two or more runs, each named once; `cotrail runs` lists them")
    return [read_run(connection, run_id) for run_id in ids]


def shared_questions(connection: Connection, records: Sequence[RunRecord]) -> SharedQuestions:
    """The questions that all of these runs have, by id.

    Raises InputError where there is none, or runs have other words for the same id.
    """
    asked = {record.id: {each.key: each for each in read_asked(connection, record.id)} for record in records}
    first, *others = asked.values()
    shared = [key for key in first if all(key in other for other in others)]
    if not shared:
        names = ", ".join(asked)
        raise InputError(f"no question is in all of the runs {names}; compare runs on the same questions")
    _check_texts(asked, shared)
    standings = {record.id: _standing(record, asked[record.id], asked) for record in records}
    if all(standing.is_fixed for standing in standings.values()):
        compared = shared
    else:
        compared = list(takewhile(lambda key: all(of[key].has_ended for of in asked.values()), shared))
    return SharedQuestions(
        compared={key: first[key] for key in compared}, left_out=len(shared) - len(compared), standings=standings
    )


def _check_texts(asked: Mapping[str, Mapping[str, AskedQuestion]], shared: Sequence[str]) -> None:
    (first_id, first), *others = asked.items()
    for key in shared:
        for other_id, other in others:
            if first[key].text != other[key].text:
                texts = " and ".join(f"“{cut(of[key].text, QUOTED)}”" for of in (first, other))
                raise InputError(
                    f"question {key!r} is {texts} in the runs {first_id} and {other_id}; compare runs on the same "
                    "questions"
                )


def _standing(
    record: RunRecord, own: Mapping[str, AskedQuestion], asked: Mapping[str, Mapping[str, AskedQuestion]]
) -> Standing:
    elsewhere = {key for run_id, others in asked.items() if run_id != record.id for key in others}
    return Standing(
        questions=len(own),
        ended=sum(each.has_ended for each in own.values()),
        alone=len(own.keys() - elsewhere),
        until=str(record.provenance.get(UNTIL) or ""),
    )
