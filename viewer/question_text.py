"""A question as plain text, for mails and issues."""

from collections.abc import Iterable, Iterator

from cotrail.core.views import name_of
from cotrail.services.views.gold_paragraphs import where
from cotrail.services.views.shown_questions import ShownQuestion
from cotrail.services.views.shown_steps import ShownStep
from cotrail.viewer.turns import MOST_HITS, Turn, written


def question_text(shown: ShownQuestion, turns: Iterable[Turn]) -> str:
    """The question, its answer, and these of its turns."""
    return "\n".join((*_head(shown), *(line for turn in turns for line in _turn(turn))))


def _head(shown: ShownQuestion) -> Iterator[str]:
    yield shown.question
    yield f"run {shown.run}, question {shown.question_id}: {shown.status}"
    if shown.answer is not None:
        yield f"answer: {shown.answer or '(empty)'} ({shown.verdict})"
    if shown.gold_answers:
        yield f"gold: {' / '.join(shown.gold_answers)}"
    for gold in shown.gold_paragraphs:
        yield f"gold paragraph {gold.name}: {where(gold)}"
    for sign in shown.explanation.signs if shown.explanation else ():
        yield f"{sign.cause}: {sign.facts}"


def _turn(turn: Turn) -> Iterator[str]:
    yield f"\nTurn {turn.number}"
    for step in turn.steps:
        yield from _step(step)


def _step(step: ShownStep) -> Iterator[str]:
    asked = f" “{step.view.asked}”" if step.view.asked else ""
    yield f"{step.sequence} {step.view.verb or step.kind}{asked}"
    for hit in step.view.found[:MOST_HITS]:
        yield f"  {hit.rank}. {name_of(hit.paragraph)} ({hit.score:.2f}){' [gold]' if hit.gold else ''}"
    if text := written(step):
        yield f"  {text}"
    if step.failure:
        yield f"  failed: {step.failure.type}: {step.failure.message}"
