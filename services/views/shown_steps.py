"""Steps as terminals, pages and programs show them: what all have, and the view that their kind makes."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from cotrail.common.humanize import count, duration
from cotrail.core.actions.registry import view_of
from cotrail.core.views import Facts, FoundParagraph, FoundParagraphs, Note, Part, View
from cotrail.evaluation.metrics.supporting_paragraphs import is_gold
from cotrail.models.queries.traces import StepFacts, TracedQuestion
from cotrail.models.schema.states import StepState


class ShownStep(StepFacts, frozen=True, kw_only=True):
    """A step with its view, in which the paragraphs found are marked as new and as gold."""

    view: View

    @property
    def pending(self) -> str:
        """Its state, where its parts aren't what came of it; empty where they are."""
        return "" if self.view.parts and self.state == StepState.FINISHED else self.state

    @property
    def words(self) -> Iterator[str]:
        """What all steps have, in words: displays say it behind the `Facts` of a view."""
        if self.milliseconds is not None:
            yield duration(self.milliseconds / 1000)
        if self.attempts > 1:
            yield count(self.attempts, "attempt")
        if self.adopted:
            yield "adopted from another run"


def shown_steps(question: TracedQuestion) -> Iterator[ShownStep]:
    """The question's steps in their order."""
    collected = {(each.step, each.paragraph.digest) for each in question.collected}

    def mark(hit: FoundParagraph, step: int) -> FoundParagraph:
        return replace(hit, new=(step, hit.digest) in collected, gold=is_gold(hit.paragraph, question.gold))

    for step in question.steps:
        # Of a model that gave no answer there is what it wrote instead.
        written = step.failure.written if step.failure else None
        view = view_of(step.action, step.result or written)
        parts = (
            FoundParagraphs(hits=tuple(mark(hit, step.sequence) for hit in part.hits))
            if isinstance(part, FoundParagraphs)
            else part
            for part in view.parts
        )
        yield ShownStep(**facts_of(step), view=replace(view, parts=(*_edit(step), *_meant(step, parts))))


def _edit(step: StepFacts) -> Iterator[Note]:
    """What stands in the place of a part of what the system asked for; a text shows as what came out of the step."""
    if step.edit and step.edit.query is not None:
        yield Note(text=f"searched for “{step.edit.query}” instead, as {step.edit.by} wrote")
    elif step.edit and step.edit.prompt is not None:
        yield Note(text=f"shown another prompt than the system's, as {step.edit.by} wrote it")
    elif step.edit:
        yield Note(text=f"written by {step.edit.by}, and not by the model")


def _meant(step: StepFacts, parts: Iterable[Part]) -> Iterator[Any]:
    """The parts that mean something: nobody counted tokens of a text that a person gave."""
    was_given = step.edit is not None and step.edit.text is not None
    yield from (part for part in parts if not (was_given and isinstance(part, Facts)))


def facts_of(step: StepFacts) -> dict[str, Any]:
    """What all steps have, by field."""
    return {name: getattr(step, name) for name in StepFacts.__struct_fields__}
