"""Where the traces of two runs part: the first step at which they did something else, or something else came out."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import zip_longest

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.printable_text import cut
from cotrail.core.actions.generate import Prompted
from cotrail.core.actions.registry import view_of
from cotrail.core.paragraphs import Paragraph
from cotrail.core.results import Failure, Generated, Result, Retrieved
from cotrail.core.views import name_of
from cotrail.models.queries.asked_questions import AskedQuestion
from cotrail.models.queries.traces import TracedQuestion, TracedStep, read_question

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
    """Where the traces of the same question part; None where they are the same to the end."""
    for number, (ours, theirs) in enumerate(zip_longest(first.steps, second.steps)):
        if words := apart(ours, theirs):
            return Parting(step=number, words=words)
    return None


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
    differing = [name for name in ours.action.__struct_fields__ if getattr(ours.action, name) != _field(theirs, name)]
    return f"other {' and '.join(differing) or 'settings'}"


def _field(step: TracedStep, name: str) -> object:
    return getattr(step.action, name, None)


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
