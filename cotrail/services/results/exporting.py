"""Questions for other programs: everything recorded of each, and BrowseComp-Plus' files; see `export_formats`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from io import RawIOBase
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from cotrail.common.printable_text import printable_json
from cotrail.core.actions.registry import fields_of
from cotrail.core.actions.retrieve import OPEN, RETRIEVE
from cotrail.core.questions import ListPlace
from cotrail.core.results import Failure, Generated
from cotrail.core.views import FoundParagraph
from cotrail.evaluation.metrics.answer_metrics import main_metrics
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.evaluation.metrics.supporting_paragraphs import is_gold
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import Collected, StepFacts, TracedQuestion, TracedStep, read_questions
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results.reasoning import FoundGold, gold_paragraphs
from cotrail.services.results.steps import ShownStep, facts_of, shown_steps
from cotrail.services.results.verdicts import NO_VERDICTS, Verdict
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.scores import shown_scores
from cotrail.services.store import reading


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


class TracedHit(ExportedParagraph, frozen=True, kw_only=True, omit_defaults=True):
    """A paragraph that a step found; new: whether the question collected it there first; lists: see `Hit`."""

    new: bool
    lists: tuple[ListPlace, ...] = ()


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


class AnsweredQuestion(Struct, frozen=True, kw_only=True):
    """A question with its answer, scores by the names of the metrics, and gold paragraphs.

    details: of the answer, as its system has them; reason: why it failed or is blocked.
    ended_by: `answer`, `limit: ...` or `failure: ...` (`cotrail.core.history`); empty where nothing is recorded.
    verdicts: what judges say of the answer.
    """

    question_id: str
    question: str
    status: str
    answer: str | None
    gold_answers: tuple[str, ...]
    gold_paragraphs: tuple[FoundGold, ...]
    scores: QuestionScores
    reason: Failure | None
    details: Any
    ended_by: str
    verdicts: tuple[Verdict, ...] = ()


class QuestionResult(AnsweredQuestion, frozen=True, kw_only=True):
    """What all files have of a question; in JSON the scores stand next to the other fields."""

    kinds: Mapping[str, str]
    sentences: tuple[str, ...]

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


REWARD = "answer_em"
"""The metric that rewards an answer unless another one is named."""


class Source(Struct, frozen=True, kw_only=True):
    """What a file is made of: a run, its questions in their order, and what judges say of each, by its id.

    reward: the metric, or the judge, that rewards an answer, in training data.
    rival: the run that it is compared with there.
    """

    record: RunRecord
    questions: Iterable[TracedQuestion] = ()
    verdicts: Mapping[str, tuple[Verdict, ...]] = NO_VERDICTS
    reward: str = REWARD
    rival: "Rival | None" = None


class Rival(Struct, frozen=True, kw_only=True):
    """Another run: its record and verdicts, and a way to read one of its questions; None for one that it hasn't."""

    source: Source
    find: Callable[[str], TracedQuestion | None]


def main_scores(record: RunRecord, question: TracedQuestion) -> dict[str, float]:
    """The question's scores by the main metrics, those that it has; a judge's verdict is no answer to be scored."""
    scores = {} if question.judged else shown_scores(record, question)
    return {each.name: score for each in main_metrics() if (score := scores.get(each.name)) is not None}


def times_of(record: RunRecord, *steps: TracedStep) -> tuple[datetime, datetime]:
    """When the first of these steps began and the last ended; the run's submission where that isn't recorded."""
    begun = min((each.started_at for each in steps if each.started_at), default=record.created_at)
    return begun, max((at for each in steps for at in (each.started_at, each.finished_at) if at), default=begun)


def rows(source: Source) -> Iterator[bytes]:
    """Everything recorded of each question."""
    for question in source.questions:
        verdicts = source.verdicts.get(question.key, ())
        yield json_line(row(source.record, question, verdicts).document())


def seen_paragraphs(source: Source) -> Iterator[bytes]:
    """Every paragraph that searches and opened pages of a run showed, once, as a corpus is indexed from them.

    Where an id has had several texts, as a page of the web has over time, the later ones are numbered.
    """
    seen, ids = set[bytes](), Counter[str]()
    for question in source.questions:
        for step in question.steps:
            for paragraph in (hit.paragraph for hit in step.hits):
                if (digest := bytes.fromhex(paragraph.digest)) in seen:
                    continue
                seen.add(digest)
                ids[paragraph.id] += 1
                number = f"#{ids[paragraph.id]}" if ids[paragraph.id] > 1 else ""
                at = (step.finished_at or source.record.created_at).date().isoformat()
                fields = {"id": paragraph.id + number, "title": paragraph.title, "text": paragraph.text, "seen": at}
                yield json_line(fields)


def row(record: RunRecord, question: TracedQuestion, verdicts: tuple[Verdict, ...] = ()) -> ExportedQuestion:
    """All about a question; an unfinished one has what is recorded so far, and scores of 0."""
    collected = tuple(_collected(each, question) for each in question.collected)
    return ExportedQuestion(**_common(record, question), paragraphs=collected, verdicts=verdicts)


def trace(record: RunRecord, question: TracedQuestion, verdicts: tuple[Verdict, ...] = ()) -> QuestionTrace:
    """A question with all its steps."""
    steps = tuple(map(_step, question.steps, shown_steps(question)))
    return QuestionTrace(**_common(record, question), run=record.id, steps=steps, verdicts=verdicts)


def _common(record: RunRecord, question: TracedQuestion) -> dict[str, Any]:
    return answered(question) | {
        "kinds": question.kinds,
        "gold_paragraphs": gold_paragraphs(question, record.dataset),
        "scores": shown_scores(record, question),
        "sentences": question.sentences,
    }


def answered(question: TracedQuestion) -> dict[str, Any]:
    """The fields of an `AnsweredQuestion` that are recorded."""
    return {
        "question_id": question.key,
        "question": question.text,
        "gold_answers": question.answers,
        **{name: getattr(question, name) for name in ("status", "answer", "reason", "details", "ended_by")},
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
        **msgspec.structs.asdict(hit.paragraph),
        rank=hit.rank,
        score=hit.score,
        new=hit.new,
        gold=hit.gold,
        lists=hit.lists,
    )


class Pieces(RawIOBase):
    """A file of which what is written is taken, to be sent on."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        """See `RawIOBase`."""
        return True

    def write(self, piece: Any) -> int:
        """See `RawIOBase`."""
        self._written += piece
        return len(piece)

    def take(self) -> bytes:
        """What was written since."""
        written, self._written = bytes(self._written), bytearray()
        return written


def json_line(value: Any) -> bytes:
    """JSON in one line, with escapes for what a terminal would obey."""
    return printable_json(msgspec.json.encode(value)) + b"\n"


# A run as BrowseComp-Plus's evaluation reads it: a file for each question (texttron/BrowseComp-Plus, README).

TOOLS = {RETRIEVE.name: "search", OPEN.name: "get_document"}
"""The publishers' names of the tools that kinds of steps stand for."""


class Metadata(Struct, frozen=True, kw_only=True):
    """What the evaluation names in its summary, and what it reads past."""

    model: str
    system: str
    run: str


class Output(Struct, frozen=True, kw_only=True, tag="output_text"):
    """The answer, which the evaluation's judge reads."""

    output: str


class Submission(Struct, frozen=True, kw_only=True):
    """A question.

    tool_call_counts: the searches and the pages opened; those that failed aren't counted.
    status: `completed`, without which the evaluation counts an answer as wrong, or the state that the question is in.
    retrieved_docids: the ids of all that searches found, be it collected or not, in the order in which it was found.
    result: the answer; empty where there is none.
    """

    metadata: Metadata
    query_id: str
    tool_call_counts: Mapping[str, int]
    status: str
    retrieved_docids: tuple[str, ...]
    result: tuple[Output, ...]


def submission_files(record: RunRecord, questions: Iterable[TracedQuestion]) -> Iterator[tuple[str, bytes]]:
    """The names of a run's files and their contents, one for each question by its number."""
    for number, question in enumerate(questions, start=1):
        yield f"{number:06}.json", json_line(submission(record, question))


def submission(record: RunRecord, question: TracedQuestion) -> Submission:
    """A question of the run as its file has it."""
    used = [step for step in question.steps if step.kind in TOOLS and step.result is not None]
    found = (hit.paragraph.id for step in used if step.kind == RETRIEVE.name for hit in step.hits)
    return Submission(
        metadata=Metadata(model=record.model_name, system=record.system, run=record.id),
        query_id=question.key,
        tool_call_counts=Counter(TOOLS[step.kind] for step in used),
        status="completed" if question.status == QuestionStatus.FINISHED else question.status,
        retrieved_docids=tuple(dict.fromkeys(found)),
        result=() if question.answer is None else (Output(output=question.answer),),
    )


@operation(
    "exports.files", "GET", "/runs/{run}/export/files", Scope.READ, answers="stream", media_type="application/jsonl"
)
def export_files(run: str) -> Iterator[bytes]:
    """Give a run's answers as BrowseComp-Plus' script reads them: a line for each file, with its name and its text."""
    with reading() as connection:
        record = find_run(connection, run)
        for name, content in submission_files(record, read_questions(connection, record.id)):
            yield msgspec.json.encode((name, content.decode())) + b"\n"
