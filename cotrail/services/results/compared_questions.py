"""The questions that compared runs share, and where the traces of two runs part."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import zip_longest

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.printable_text import cut, first_difference
from cotrail.core.actions.generate import Prompted
from cotrail.core.actions.registry import view_of
from cotrail.core.history import LIMIT
from cotrail.core.questions import Paragraph
from cotrail.core.results import Failure, Generated, Result, Retrieved
from cotrail.core.views import name_of
from cotrail.errors import InputError
from cotrail.evaluation.comparison.differences import Reach, compared_questions
from cotrail.evaluation.metrics.stop_rules import until
from cotrail.models.queries.listed_questions import AskedQuestion, read_asked
from cotrail.models.queries.repeated_steps import runs_of
from cotrail.models.queries.runs import RunRecord, read_run, resolve_run
from cotrail.models.queries.traces import TracedQuestion, TracedStep, read_question
from cotrail.models.records.runs import read_labels
from cotrail.models.schema.states import QuestionStatus

QUOTED_QUESTION = 60
"""Characters of a question in a message."""

Systems = Mapping[str, Sequence[RunRecord]]
"""What is compared, each by the id of its first run: a run, or several that repeat it with other seeds."""


class ComparedProgress(Struct, frozen=True, kw_only=True):
    """How far a run is, or the one of several repeats that is least far.

    questions: all of its own, of which `ended` have an answer or failed, and no other compared run has those `alone`.
    until: the rule by which it stops asking questions, empty where it has none.
    unasked: those that were never asked to their end, as a rule, a budget or a person ended the run; they are in no
        figure. limit: the limit of the run's budget that left them over (`run money`), empty where none did.
    """

    questions: int
    ended: int
    alone: int
    until: str
    unasked: int = 0
    limit: str = ""

    @property
    def is_whole(self) -> bool:
        """Return whether all questions have ended, and no rule stopped it."""
        return self.ended == self.questions and not self.until


class SharedQuestions(Struct, frozen=True, kw_only=True):
    """The questions of all compared runs.

    compared, left_out, are_fixed: see `ComparedQuestions`. standings: of what is compared, by the id of its first run.
    """

    compared: Mapping[str, AskedQuestion]
    left_out: int
    are_fixed: bool
    standings: Mapping[str, ComparedProgress]


def compared_records(connection: Connection, runs: Sequence[str]) -> list[RunRecord]:
    """The runs that a person means; raises InputError where they are fewer than two, or one is named twice."""
    ids = [resolve_run(connection, run) for run in runs]
    if len(set(ids)) < len(ids) or len(ids) < 2:
        raise InputError("a comparison needs two or more runs, each named once; `cotrail runs` lists them")
    return [read_run(connection, run_id) for run_id in ids]


def compared_systems(connection: Connection, runs: Sequence[str], *, repeats: bool) -> Systems:
    """What a person compares: runs that repeat one another are one system, unless all of them do.

    repeats: whether each run stands for all its repeats. Raises InputError where fewer than two are left.
    """
    records = compared_records(connection, runs)
    groups: dict[tuple[str, ...], list[RunRecord]] = {}
    for record in records:
        group = tuple(runs_of(connection, record)) or (record.id,)
        groups.setdefault(group, []).append(record)
    if repeats:
        groups = {group: [read_run(connection, run_id) for run_id in group] for group in groups}
        if len(groups) < 2:
            raise InputError("all of these runs repeat the same one; compare them without --repeats")
    return {each[0].id: each for each in (groups.values() if len(groups) > 1 else ([record] for record in records))}


def shared_questions(connection: Connection, systems: Systems) -> SharedQuestions:
    """The questions that all of these runs have, by id.

    Raises InputError where there is none, or runs have other words for the same id.
    """
    records = [record for of in systems.values() for record in of]
    asked = {record.id: {each.key: each for each in read_asked(connection, record.id)} for record in records}
    _check_texts(asked)
    ended = {run: {key: each.has_ended for key, each in of.items()} for run, of in asked.items()}
    found = compared_questions([Reach(ended=ended[each.id], until=until(each.provenance)) for each in records])
    first = asked[records[0].id]
    return SharedQuestions(
        compared={key: first[key] for key in found.keys},
        left_out=found.left_out,
        are_fixed=found.is_fixed,
        standings={name: _standing(name, systems, asked) for name in systems},
    )


def _check_texts(asked: Mapping[str, Mapping[str, AskedQuestion]]) -> None:
    (first_id, first), *others = asked.items()
    shared = [key for key in first if all(key in other for _, other in others)]
    if not shared:
        names = ", ".join(asked)
        raise InputError(f"no question is in all of the runs {names}; compare runs on the same questions")
    for key in shared:
        for other_id, other in others:
            if first[key].text != other[key].text:
                texts = first_difference(first[key].text, other[key].text, QUOTED_QUESTION)
                raise InputError(
                    f"question {key!r} has other words in the runs {first_id} and {other_id}, {texts}; compare runs on "
                    "the same questions"
                )


def _standing(name: str, systems: Systems, asked: Mapping[str, Mapping[str, AskedQuestion]]) -> ComparedProgress:
    own, runs = asked[name], systems[name]
    unasked = ([each for each in asked[run.id].values() if each.status == QuestionStatus.CANCELLED] for run in runs)
    left_over = max(unasked, key=len)
    elsewhere = {key for other, of in systems.items() if other != name for each in of for key in asked[each.id]}
    return ComparedProgress(
        questions=len(own),
        ended=min(sum(each.has_ended for each in asked[run.id].values()) for run in runs),
        alone=len(own.keys() - elsewhere),
        until=next(filter(None, (until(run.provenance) for run in runs)), ""),
        unasked=len(left_over),
        limit=next((each.ended_by.removeprefix(LIMIT) for each in left_over if each.ended_by.startswith(LIMIT)), ""),
    )


# Where the traces of two runs part: the first step at which they did something else, or something else came out.

QUOTED = 80
"""Characters that are quoted of what each side asked or got."""

SHOWN_TITLES = 3
"""Paragraphs that are named of those that one side alone found."""

TRACES_KEPT = 200
"""Traces that are kept for further pairs of the same run."""


class Parting(Struct, frozen=True, kw_only=True):
    """The first step at which two traces part, by its number in both; words: what is different there, for a reader."""

    step: int
    words: str


class Side(Struct, frozen=True, kw_only=True):
    """A run's answer to a question, None where it has none, and its score by the primary metric."""

    answer: str | None
    score: float | None


class DifferingQuestion(Struct, frozen=True, kw_only=True):
    """A question that two runs answered with another score; parting: None where the traces are the same to the end."""

    key: str
    text: str
    gold: tuple[str, ...]
    first: Side
    second: Side
    parting: Parting | None

    @property
    def is_win(self) -> bool:
        """Return whether the first run scores more."""
        return (self.first.score or 0) > (self.second.score or 0)


class Traces:
    """Reads the traces of questions in runs, each once; scores: by the primary metric, by run and question."""

    def __init__(self, connection: Connection, scores: Mapping[str, Mapping[str, float | None]]) -> None:
        self._scores = scores
        self._read = lru_cache(TRACES_KEPT)(partial(read_question, connection))

    def differing(self, first: str, second: str, question: AskedQuestion) -> DifferingQuestion:
        """A question that two runs answered with another score."""
        ours, theirs = (self._read(run, question.key) for run in (first, second))
        sides = (
            Side(answer=traced.answer, score=self._scores[run].get(question.key))
            for run, traced in ((first, ours), (second, theirs))
        )
        left, right = sides
        return DifferingQuestion(
            key=question.key,
            text=question.text,
            gold=ours.answers,
            first=left,
            second=right,
            parting=parting(ours, theirs),
        )


def parting(first: TracedQuestion, second: TracedQuestion) -> Parting | None:
    """Where the traces of the same question part; None where they are the same as far as they are there."""
    for number, (ours, theirs) in enumerate(zip_longest(first.steps, second.steps)):
        if _is_to_come(first, ours, theirs) or _is_to_come(second, theirs, ours):
            return None
        if words := apart(ours, theirs):
            return Parting(step=number, words=words)
    return None


def _is_to_come(question: TracedQuestion, step: TracedStep | None, other: TracedStep | None) -> bool:
    """Whether an open question still has to come to such a step, or to what comes of the same one."""
    if question.status != QuestionStatus.OPEN or step is None or other is None:
        return question.status == QuestionStatus.OPEN and step is None
    same = (step.action, step.edit) == (other.action, other.edit)
    return same and step.result is None and step.failure is None


def apart(ours: TracedStep | None, theirs: TracedStep | None) -> str:
    """What is different between two steps in the same place, in words; empty where nothing is."""
    if ours is None or theirs is None:
        return f"{_did(ours) if ours else 'ended'} / {_did(theirs) if theirs else 'ended'}"
    if ours.kind != theirs.kind:
        return f"{_did(ours)} / {_did(theirs)}"
    if ours.edit != theirs.edit:
        return " / ".join(each.edit.words if each.edit else "as the system asked" for each in (ours, theirs))
    if ours.action != theirs.action:
        return f"asked otherwise: {_asked_otherwise(ours, theirs)}"
    return _came_out_otherwise(ours, theirs)


def _did(step: TracedStep) -> str:
    view = view_of(step.action, step.result)
    asked = f" “{cut(view.asked, QUOTED)}”" if view.asked else ""
    return f"{view.verb or step.kind}{asked}"


def _asked_otherwise(ours: TracedStep, theirs: TracedStep) -> str:
    if isinstance(ours.action, Prompted) and isinstance(theirs.action, Prompted):
        return _prompted_otherwise(ours.action, theirs.action)
    if ours.query is not None and theirs.query is not None and ours.query != theirs.query:
        return f"“{cut(ours.query, QUOTED)}” / “{cut(theirs.query, QUOTED)}”"
    one, other = ours.action, theirs.action
    differing = [name for name in one.__struct_fields__ if getattr(one, name) != getattr(other, name, None)]
    return f"other {' and '.join(differing) or 'settings'}"


def _prompted_otherwise(ours: Prompted, theirs: Prompted) -> str:
    left, right = ours.prompt.paragraphs, theirs.prompt.paragraphs
    if _digests(left) != _digests(right):
        return _others("with", left, right)
    if ours.prompt != theirs.prompt:
        return "another prompt with the same paragraphs"
    differing = [name for name in ours.__struct_fields__ if getattr(ours, name) != getattr(theirs, name, None)]
    return f"the same prompt with other {' and '.join(differing) or 'settings'}"


def _came_out_otherwise(ours: TracedStep, theirs: TracedStep) -> str:
    left, right = ours.result or ours.failure, theirs.result or theirs.failure
    if _told(left) == _told(right):
        return ""
    if isinstance(left, Retrieved) and isinstance(right, Retrieved):
        return f"asked the same, {_others('found', left.paragraphs, right.paragraphs)}"
    same = "same prompt, other text" if isinstance(ours.action, Prompted) else "asked the same, another result"
    return f"{same}: “{_quoted(left)}” / “{_quoted(right)}”"


def _told(outcome: Result | Failure | None) -> object:
    """What came out as the system sees it: neither tokens counted nor scores of searches."""
    match outcome:
        case Generated():
            return outcome.text, tuple((call.name, call.arguments) for call in outcome.calls)
        case Retrieved():
            return _digests(outcome.paragraphs)
        case Failure():
            return outcome.type, outcome.message
        case None:
            return None
    return outcome.recorded()


def _quoted(outcome: Result | Failure | None) -> str:
    match outcome:
        case Generated():
            calls = " ".join(f"{call.name} {call.arguments}" for call in outcome.calls)
            return cut(outcome.text or calls, QUOTED)
        case Failure():
            return cut(f"{outcome.type}: {outcome.message}", QUOTED)
        case None:
            return "nothing yet"
    return cut(str(outcome.recorded()), QUOTED)


def _others(verb: str, left: Sequence[Paragraph], right: Sequence[Paragraph]) -> str:
    """Which paragraphs each side has and the other one hasn't."""
    if set(_digests(left)) == set(_digests(right)):
        return f"{verb} the same paragraphs in another order"
    return f"{verb} other paragraphs: {_alone(left, right)} / {_alone(right, left)}"


def _alone(ours: Sequence[Paragraph], theirs: Sequence[Paragraph]) -> str:
    """The names of the first few that the other side hasn't."""
    both = set(_digests(theirs))
    names = [cut(name_of(each), QUOTED) for each in ours if each.digest not in both]
    more = f" and {len(names) - SHOWN_TITLES} more" if len(names) > SHOWN_TITLES else ""
    return f"{', '.join(names[:SHOWN_TITLES])}{more}" if names else "no further one"


def _digests(paragraphs: Sequence[Paragraph]) -> tuple[str, ...]:
    return tuple(each.digest for each in paragraphs)


def distinct_names(connection: Connection, ids: Sequence[str]) -> Mapping[str, str]:
    """Each run's own name where it has one that no other of them has, otherwise its id."""
    labels = read_labels(connection, ids)
    named = [labels[run_id].name if run_id in labels else None for run_id in ids]
    return {
        run_id: name if name and named.count(name) == 1 and name not in ids else run_id
        for run_id, name in zip(ids, named, strict=True)
    }
