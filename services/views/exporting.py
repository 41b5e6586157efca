"""Runs for other programs: everything recorded for each question, or files for the official evaluation scripts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from cotrail.common.printable_text import printable_json
from cotrail.core.actions.registry import fields_of
from cotrail.core.results import Failure, Generated
from cotrail.core.views import FoundParagraph
from cotrail.evaluation.metrics.scores import QuestionScores
from cotrail.evaluation.metrics.supporting_paragraphs import is_gold
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import Collected, StepFacts, TracedQuestion, TracedStep
from cotrail.services.views.gold_paragraphs import FoundGold, gold_paragraphs
from cotrail.services.views.run_verdicts import NO_VERDICTS, Verdict
from cotrail.services.views.scored_questions import scores_of
from cotrail.services.views.shown_steps import ShownStep, facts_of, shown_steps

Format = Literal["jsonl", "hotpotqa", "musique"]


class ExportedParagraph(Struct, frozen=True, kw_only=True):
    """A paragraph that was found; gold: whether the dataset marks it as needed."""

    rank: int
    score: float
    id: str
    title: str
    text: str
    gold: bool


class CollectedParagraph(ExportedParagraph, frozen=True, kw_only=True):
    """A paragraph that a question collected, and the search that first found it."""

    step: int
    query: str


class TracedHit(ExportedParagraph, frozen=True, kw_only=True):
    """A paragraph that a step found; new: whether the question collected it there first."""

    new: bool


class StepTrace(StepFacts, frozen=True, kw_only=True):
    """A step; what a kind doesn't have isn't in its JSON.

    paragraphs: of a generation, how many its prompt was made of; of a comparison, the digests of those compared with.
    """

    sample: int | UnsetType | None = UNSET
    query: str | UnsetType = UNSET
    source: str | UnsetType | None = UNSET
    hits: tuple[TracedHit, ...] | UnsetType = UNSET
    sentences: tuple[str, ...] | UnsetType = UNSET
    paragraphs: int | tuple[str, ...] | UnsetType = UNSET
    generated: Generated | UnsetType | None = UNSET
    found: Any = UNSET
    request: Any = UNSET
    result: Any = UNSET


class QuestionResult(Struct, frozen=True, kw_only=True):
    """A question with its answer, scores and gold paragraphs; details: of the answer, as its system has them.
    ended_by: `answer`, `limit: ...` or `failure: ...` (`cotrail.core.ended_by`); empty where nothing is recorded.
    verdicts: what judges say of the answer.

    scores: by the names of the metrics; in JSON they stand beside the other fields.
    """

    question_id: str
    question: str
    status: str
    answer: str | None
    gold_answers: tuple[str, ...]
    kinds: Mapping[str, str]
    gold_paragraphs: tuple[FoundGold, ...]
    scores: QuestionScores
    reason: Failure | None
    sentences: tuple[str, ...]
    details: Any
    ended_by: str
    verdicts: tuple[Verdict, ...] = ()

    def document(self) -> dict[str, Any]:
        """What its JSON holds."""
        fields = msgspec.structs.asdict(self)
        return {**fields.pop("scores"), **fields}


class ExportedQuestion(QuestionResult, frozen=True, kw_only=True):
    """A line of an export: the result with the paragraphs that were collected."""

    paragraphs: tuple[CollectedParagraph, ...]


class QuestionTrace(QuestionResult, frozen=True, kw_only=True):
    """A trace: the result with all steps."""

    run: str
    steps: tuple[StepTrace, ...]


class MusiquePrediction(Struct, frozen=True, kw_only=True):
    """An answer as MuSiQue's script reads it.

    predicted_support_idxs: within the dataset's own paragraphs, which a search of a corpus doesn't know.
    """

    id: str
    predicted_answer: str
    predicted_support_idxs: tuple[int, ...] = ()
    predicted_answerable: bool = True


class HotpotqaPredictions(Struct, frozen=True, kw_only=True):
    """Answers by question as HotpotQA's script reads them.

    sp: supporting facts, as the first sentence of each collected paragraph: cotrail retrieves whole paragraphs.
    """

    answer: Mapping[str, str]
    sp: Mapping[str, tuple[tuple[str, int], ...]]


def lines(
    record: RunRecord,
    questions: Iterable[TracedQuestion],
    form: Format,
    verdicts: Mapping[str, tuple[Verdict, ...]] = NO_VERDICTS,
) -> Iterator[bytes]:
    """The lines of a run's file in that format; verdicts: what judges say of each question."""
    match form:
        case "jsonl":
            for question in questions:
                yield _encode(row(record, question, verdicts.get(question.key, ())).document()) + b"\n"
        case "musique":
            for question in questions:
                yield _encode(_musique(question)) + b"\n"
        case "hotpotqa":
            yield _encode(_hotpotqa(questions)) + b"\n"


def row(record: RunRecord, question: TracedQuestion, verdicts: tuple[Verdict, ...] = ()) -> ExportedQuestion:
    """All about a question; an unfinished one has what is recorded so far, and scores of 0."""
    collected = tuple(_collected(each, question) for each in question.collected)
    return ExportedQuestion(**_common(record, question), paragraphs=collected, verdicts=verdicts)


def trace(record: RunRecord, question: TracedQuestion, verdicts: tuple[Verdict, ...] = ()) -> QuestionTrace:
    """A question with all its steps."""
    steps = tuple(map(_step, question.steps, shown_steps(question)))
    return QuestionTrace(**_common(record, question), run=record.id, steps=steps, verdicts=verdicts)


def _common(record: RunRecord, question: TracedQuestion) -> dict[str, Any]:
    return {
        "question_id": question.key,
        "question": question.text,
        "status": question.status,
        "answer": question.answer,
        "gold_answers": question.answers,
        "kinds": question.kinds,
        "gold_paragraphs": gold_paragraphs(question, record.dataset),
        "scores": scores_of(record, question),
        "reason": question.reason,
        "sentences": question.sentences,
        "details": question.details,
        "ended_by": question.ended_by,
    }


def _collected(each: Collected, question: TracedQuestion) -> CollectedParagraph:
    return CollectedParagraph(
        **msgspec.structs.asdict(each.paragraph),
        step=each.step,
        rank=each.rank,
        score=each.score,
        query=each.query,
        gold=is_gold(each.paragraph, question.gold),
    )


def _step(step: TracedStep, view: ShownStep) -> StepTrace:
    if step.query is None:
        return StepTrace(**facts_of(step), **fields_of(step.action, step.result))
    hits = tuple(map(_hit, view.view.found))
    return StepTrace(**facts_of(step), query=step.query, source=view.view.source, hits=hits)


def _hit(hit: FoundParagraph) -> TracedHit:
    return TracedHit(
        **msgspec.structs.asdict(hit.paragraph), rank=hit.rank, score=hit.score, new=hit.new, gold=hit.gold
    )


def _musique(question: TracedQuestion) -> MusiquePrediction:
    return MusiquePrediction(id=question.key, predicted_answer=question.stated or question.answer or "")


def _hotpotqa(questions: Iterable[TracedQuestion]) -> HotpotqaPredictions:
    answers, facts = {}, {}
    for question in questions:
        answers[question.key] = question.stated or question.answer or ""
        facts[question.key] = tuple((paragraph.title, 0) for paragraph in question.paragraphs)
    return HotpotqaPredictions(answer=answers, sp=facts)


def _encode(value: Any) -> bytes:
    """JSON in one line, with escapes for what a terminal would obey."""
    return printable_json(msgspec.json.encode(value))
