"""A question: how it was answered, turn by turn, and each step as it is recorded."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from cotrail.core.money import shown_dollars
from cotrail.data.datasets.registry import DATASETS
from cotrail.errors import CotrailError, InputError
from cotrail.faithfulness.weighing import Weighing
from cotrail.services.actor import Scope, actor
from cotrail.services.results import cause_labels, questions, steps
from cotrail.services.results.cause_labels import Cause, CauseLabel
from cotrail.services.results.causes import details_in
from cotrail.services.results.questions import ShownQuestion
from cotrail.services.results.reasoning import shown_tree
from cotrail.services.results.reports.pages import anchor_of
from cotrail.services.results.reports.reported_questions import reported_weighing
from cotrail.services.results.verdicts import Verdict
from cotrail.systems.judge.rubric import Judgement
from cotrail.systems.searchain.tree import Tree
from cotrail.viewer.drawings import gold_line, timeline
from cotrail.viewer.page import GoTo, Shown, action, lines, link, page
from cotrail.viewer.rendering import framed
from cotrail.viewer.turns import (
    Turn,
    TurnPage,
    first_seen,
    other_parts,
    pages_of,
    shown_hits,
    text_fragment,
    turns_of,
    turns_with,
)

Fold = Literal["all", "none"]
Text = Annotated[str, Meta(max_length=200)]
Name = Annotated[str, Meta(min_length=1, max_length=100)]
Lines = Annotated[str, Meta(max_length=20_000)]


@page("/runs/{run}/questions/{question}")
def show(run: str, question: str, turns: int = 0, fold: Fold | None = None, find: Text = "") -> Shown:
    """The question; turns: one of those that are shown, the first ones without it, and the last ones while it is open.

    find: a text that the turns have which the outline lists, the first of them among those that are shown.
    fold: whether texts of paragraphs, thoughts and scores are folded: all or none, without it all but gold paragraphs.
    """
    shown = questions.show_question(run, question)
    times = steps.show_times(run, question)
    every = turns_of(shown.steps, {each.sequence: each.batch for each in times})
    pages = pages_of(every)
    found = turns_with(find, every) if find.strip() else None
    current = _current(pages, turns or (found[0].number if found else 0), is_open=shown.status == "open")
    on_page = {step.sequence for turn in current.turns for step in turn.steps} if current else set()
    values = {
        **_values(shown, every, current, fold),
        "place": questions.show_place(run, question),
        "pages": pages,
        "find": find,
        "found": found,
        "text_fragment": text_fragment(find),
        "timeline": timeline([each for each in times if each.sequence in on_page]),
        "labels": _labels(shown),
    }
    followed = link("v1", "runs", shown.run, "questions", shown.question_id, "events")
    return Shown(
        template="question.html", section="runs", values=values, events=followed if shown.status == "open" else ""
    )


def alone(shown: ShownQuestion) -> str:
    """The question with the first page of its turns, as an output of a notebook."""
    every = turns_of(shown.steps, {})
    return framed("question-alone.html", _values(shown, every, next(iter(pages_of(every)), None)))


def _values(
    shown: ShownQuestion, every: Sequence[Turn], current: TurnPage | None, fold: Fold | None = None
) -> dict[str, Any]:
    """What the parts of the page need that stand alone too."""
    seen, turn_of = first_seen(every), {step.sequence: turn.number for turn in every for step in turn.steps}
    return {
        "shown": shown,
        "knows_dataset": shown.dataset in DATASETS,
        "turns": every,
        "current": current,
        "turn_of": turn_of,
        "hits": lambda step, turn: shown_hits(step, turn, seen),
        "other_parts": other_parts,
        "fold": fold,
        "gold_line": gold_line(shown.gold_paragraphs, turn_of, len(every)),
        "anchors": {anchor_of(digest) for turn in (current.turns if current else ()) for digest in turn.new},
        **_drawn(shown),
    }


@action("/runs/{run}/questions/{question}/labels", Scope.SUBMIT)
def label(run: str, question: str, annotator: Name, cause: Cause, note: Lines = "") -> GoTo:
    """Say why the answer is wrong, in place of what the same person said before; question: its id."""
    if not annotator.strip():
        raise InputError("say who says so: the name is blank")
    said = CauseLabel(question_id=question, annotator=annotator.strip(), cause=cause, note=lines(note).strip())
    cause_labels.label(run, [said])
    return GoTo(link("runs", run, "questions", question) + "#labels")


@page("/runs/{run}/questions/{question}/steps/{step}")
def step(run: str, question: str, step: int) -> Shown:
    """A step: its exact prompt, what of it the model was shown, its executions, what it cost and what seals it."""
    record = steps.show_step(run, question, step)
    prompt = _prompt(run, question, step) if record.asks else None
    return Shown(
        template="question-step.html",
        section="runs",
        values={"record": record, "prompt": prompt, "money": shown_dollars(record.spent)},
    )


class _Labels(Struct, frozen=True, kw_only=True):
    """What people say of a wrong answer: who has said so, what there is to choose, and the one who looks.

    wrong: whether there is anything to say.
    """

    said: tuple[CauseLabel, ...]
    causes: tuple[Cause, ...]
    annotator: str
    own: CauseLabel | None
    wrong: bool


def _labels(shown: ShownQuestion) -> _Labels:
    said, who = cause_labels.list_labels(shown.run, question=shown.question_id), actor().name
    return _Labels(
        said=said,
        causes=tuple(Cause),
        annotator=who,
        own=next((each for each in said if each.annotator == who), None),
        # Browsers leave such a part out of an address, which would be another form's then.
        wrong=shown.explanation is not None and shown.question_id not in (".", ".."),
    )


class _Prompt(Struct, frozen=True, kw_only=True):
    """The exact prompt of a step, or why it can't be rebuilt."""

    text: str = ""
    problem: str = ""


def _prompt(run: str, question: str, step: int) -> _Prompt:
    try:
        return _Prompt(text=steps.show_prompt(run, question, step).prompt)
    except CotrailError as error:
        return _Prompt(problem=str(error))


def _current(pages: Sequence[TurnPage], turn: int, *, is_open: bool) -> TurnPage | None:
    """The page with this turn; the first one without it, and of an open question the last."""
    if not pages:
        return None
    return next((each for each in pages if each.first <= turn <= each.last), pages[-1 if is_open else 0])


def _drawn(shown: ShownQuestion) -> dict[str, Any]:
    """The details of the answer as what they are."""
    drawn: dict[str, Any] = {"tree": None, "weighing": None, "own_verdicts": (), "details": None}
    match details_in(shown.system, shown.system_version, shown.details):
        case Tree() as tree:
            return drawn | {"tree": shown_tree(tree, shown.names)}
        case Weighing() as weighing:
            return drawn | {"weighing": reported_weighing(weighing, shown.steps, shown.gold_answers, shown.dataset)}
        case Judgement() as judgement:
            own = Verdict(
                judge=shown.system, run=shown.run, judgement=judgement, failure=shown.reason, ended_by=shown.ended_by
            )
            return drawn | {"own_verdicts": (own,)}
    return drawn | {
        "details": None if shown.details is None else msgspec.json.format(msgspec.json.encode(shown.details)).decode()
    }
