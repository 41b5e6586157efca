"""A run as one file that another program reads: each format is a record of `FORMATS`."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.common.optional_packages import not_installed
from cotrail.core.questions import Paragraph, passage_of
from cotrail.data.datasets.registry import DATASETS, scoring_of
from cotrail.data.datasets.spec import Scoring
from cotrail.errors import InputError, UnknownNameError
from cotrail.evaluation.metrics import supporting_paragraphs
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion, read_question, read_questions
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import MediaTypes, operation
from cotrail.services.results.exported_traces import inspect_log, traces
from cotrail.services.results.exporting import REWARD, Pieces, Rival, Source, json_line, row, rows, seen_paragraphs
from cotrail.services.results.training_data import chat_lines, preference_lines
from cotrail.services.results.verdicts import verdicts_by_question
from cotrail.services.runs.labels import find_run
from cotrail.services.store import reading

# The official scripts of datasets.


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


def _musique(source: Source) -> Iterator[bytes]:
    for question in source.questions:
        yield json_line(MusiquePrediction(id=question.key, predicted_answer=_short(question)))


def _hotpotqa(source: Source) -> Iterator[bytes]:
    answers, facts = {}, {}
    for question in source.questions:
        answers[question.key] = _short(question)
        facts[question.key] = tuple((paragraph.title, 0) for paragraph in question.paragraphs)
    yield json_line(HotpotqaPredictions(answer=answers, sp=facts))


def _short(question: TracedQuestion) -> str:
    return question.stated or question.answer or ""


# Rankings and judgements in the forms of TREC, whose fields are separated by spaces.


def field(name: str) -> str:
    """An id as a field: `%`, white space and what can't be printed are percent-encoded, as in a URL."""
    return "".join(quote(each) if each in " %" or not each.isprintable() else each for each in name)


Topic = tuple[str, TracedQuestion, tuple[Paragraph, ...]]
"""The name of a topic, its question, and what was found."""


def _by_question(source: Source) -> Iterator[Topic]:
    fold = _fold(source.record)
    for question in source.questions:
        yield field(question.key), question, tuple(_collected(question, fold))


def _by_search(source: Source) -> Iterator[Topic]:
    for question in source.questions:
        for step in question.steps:
            if step.query is not None:
                found = tuple(hit.paragraph for hit in step.hits)
                yield f"{field(question.key)}.{step.sequence}", question, found


def _rankings(topics: Callable[[Source], Iterator[Topic]], source: Source) -> Iterator[bytes]:
    """Scores count down, as trec_eval orders by them alone, and those of several searches can't be compared."""
    for topic, _, found in topics(source):
        ids = dict.fromkeys(field(each.id) for each in found)
        for rank, identifier in enumerate(ids, start=1):
            yield f"{topic} Q0 {identifier} {rank} {len(ids) + 1 - rank} {field(source.record.id)}\n".encode()


def _judgements(topics: Callable[[Source], Iterator[Topic]], source: Source) -> Iterator[bytes]:
    fold = _fold(source.record)
    for topic, question, _ in topics(source):
        yield from _judged(topic, question, fold)


def _judged(topic: str, question: TracedQuestion, fold: supporting_paragraphs.Fold) -> Iterator[bytes]:
    """The gold paragraphs by their ids in the corpus: as one was found, else as the dataset has it.

    One of which neither is known stays, by its digest, as it counts in the recall.
    """
    found: dict[supporting_paragraphs.Key, str] = {}
    hits = (hit.paragraph for step in question.steps for hit in step.hits)
    for paragraph in chain(_collected(question, fold), hits):
        for key in supporting_paragraphs.paragraph_keys(paragraph, fold):
            found.setdefault(key, paragraph.id)
    grades: dict[str, int] = {}
    for gold in supporting_paragraphs.counted(question.gold, question.pinned):
        unknown = f"unknown-{passage_of(gold.text, gold.title).digest}"
        grades.setdefault(
            field(found.get(supporting_paragraphs.gold_key(gold, fold)) or gold.id or unknown), gold.grade
        )
    for identifier, grade in grades.items():
        yield f"{topic} 0 {identifier} {grade}\n".encode()


def _collected(question: TracedQuestion, fold: supporting_paragraphs.Fold) -> Iterator[Paragraph]:
    """What the recall counts: the passage that the question is about takes no rank."""
    pinned = question.pinned and supporting_paragraphs.content_of(question.pinned, fold)
    return (
        each for each in question.paragraphs if pinned is None or supporting_paragraphs.content_of(each, fold) != pinned
    )


def _fold(record: RunRecord) -> supporting_paragraphs.Fold:
    is_known = record.dataset in DATASETS
    return supporting_paragraphs.fold_of(scoring_of(record.dataset) if is_known else Scoring("squad", any_script=True))


# Parquet in the layout of Hugging Face's datasets: a row a question, and a card that says what it is.

ROWS_AT_ONCE = 500
"""Rows of a group, which are in memory together."""

JSON_COLUMNS = ("gold_paragraphs", "kinds", "reason", "details", "verdicts")
"""Columns whose form differs between systems and datasets: JSON as text."""


def parquet_file(source: Source) -> Iterator[bytes]:
    """The file; raises NotInstalledError without pyarrow."""
    try:
        import pyarrow as arrow
        from pyarrow.parquet import ParquetWriter
    except ModuleNotFoundError as error:
        raise not_installed("pyarrow", "files") from error
    schema, pieces = _schema(arrow), Pieces()
    with ParquetWriter(pieces, schema, compression="zstd") as writer:
        rows = (_row(source, each) for each in source.questions)
        while group := list(islice(rows, ROWS_AT_ONCE)):
            writer.write_table(arrow.Table.from_pylist(group, schema))
            yield pieces.take()
    yield pieces.take()


def _schema(arrow: Any) -> Any:
    text, number = arrow.string(), arrow.int64()
    found = {"step": number, "rank": number, "score": arrow.float64(), "gold": arrow.bool_()}
    paragraph = arrow.struct([*found.items(), *((name, text) for name in ("id", "title", "text", "query"))])
    return arrow.schema(
        [
            *((name, text) for name in ("run", "question_id", "question", "status", "answer", "ended_by")),
            *((name, arrow.list_(text)) for name in ("gold_answers", "sentences")),
            ("paragraphs", arrow.list_(paragraph)),
            *((name, arrow.float64()) for name in METRICS),
            *((name, text) for name in JSON_COLUMNS),
        ]
    )


def _row(source: Source, question: TracedQuestion) -> dict[str, Any]:
    result = row(source.record, question, source.verdicts.get(question.key, ()))
    document: dict[str, Any] = msgspec.to_builtins(result.document())
    texts = {name: msgspec.json.encode(document[name]).decode() for name in JSON_COLUMNS}
    return document | {"run": source.record.id} | texts


CARD = Path(__file__).parent / "reports" / "templates" / "card.md"


def dataset_card(source: Source) -> Iterator[bytes]:
    """The card (README.md) of a folder with such files: what a run is made of, and what its columns are."""
    record = source.record
    facts = {
        "run": record.id,
        "digest": record.digest,
        "system": f"{record.system} (version {record.system_version})",
        **{name: getattr(record, name) for name in ("settings", "dataset", "corpus", "corpus_revision")},
        **{name: getattr(record, name) for name in ("model", "temperature", "seed", "provenance")},
    }
    yield (
        CARD.read_text("utf-8")
        .format(
            system=msgspec.json.encode(record.system).decode(),
            size=record.size,
            metrics=", ".join(f"`{name}`" for name in METRICS),
            json_columns=", ".join(f"`{name}`" for name in JSON_COLUMNS),
            shown=msgspec.json.format(msgspec.json.encode(facts), indent=2).decode(),
        )
        .encode()
    )


# The formats.

FormatName = Literal[
    "jsonl", "hotpotqa", "musique", "trec", "trec-steps", "qrels", "qrels-steps",
    "chat", "preferences", "inspect", "otlp", "parquet", "card", "seen",
]  # fmt: skip


class Format(Struct, frozen=True, kw_only=True):
    """A format; pieces: makes a file, question by question.

    media_type: of the file; binary: whether it is no text.
    nothing: what a run lacks that gives no piece; empty where that is a file too.
    """

    pieces: Callable[[Source], Iterator[bytes]]
    media_type: str = "application/jsonl"
    binary: bool = False
    nothing: str = ""


_FOUND_NOTHING = "has found no paragraphs"
_COLLECTED_NOTHING = "has collected no paragraphs"
_NO_PAIRS = "has no texts that begin as those of the other run do and got another reward"
_NO_GOLD = "has no questions with gold paragraphs, which its dataset would have to publish"

FORMATS: Mapping[FormatName, Format] = {
    "jsonl": Format(pieces=rows),
    "hotpotqa": Format(pieces=_hotpotqa),
    "musique": Format(pieces=_musique),
    "trec": Format(pieces=partial(_rankings, _by_question), media_type="text/plain", nothing=_COLLECTED_NOTHING),
    "trec-steps": Format(pieces=partial(_rankings, _by_search), media_type="text/plain", nothing=_FOUND_NOTHING),
    "qrels": Format(pieces=partial(_judgements, _by_question), media_type="text/plain", nothing=_NO_GOLD),
    "qrels-steps": Format(pieces=partial(_judgements, _by_search), media_type="text/plain", nothing=_NO_GOLD),
    "chat": Format(pieces=chat_lines, nothing="has no texts of a language model"),
    "preferences": Format(pieces=preference_lines, nothing=_NO_PAIRS),
    "inspect": Format(pieces=inspect_log, media_type="application/zip", binary=True),
    "otlp": Format(pieces=traces),
    "parquet": Format(pieces=parquet_file, media_type="application/vnd.apache.parquet", binary=True),
    "card": Format(pieces=dataset_card, media_type="text/markdown"),
    "seen": Format(pieces=seen_paragraphs, nothing=_FOUND_NOTHING),
}


def lines(source: Source, form: FormatName) -> Iterator[bytes]:
    """The pieces of a run's file, which are lines unless it is binary; raises InputError where there are none."""
    written = False
    for piece in FORMATS[form].pieces(source):
        written = True
        yield piece
    if not written and FORMATS[form].nothing:
        raise InputError(f"run {source.record.id} {FORMATS[form].nothing}; choose another format")


@operation(
    "exports.answers",
    "GET",
    "/runs/{run}/export",
    Scope.READ,
    answers="stream",
    media_type=MediaTypes(parameter="form", types={name: each.media_type for name, each in FORMATS.items()}),
)
def export_answers(run: str, form: FormatName = "jsonl", reward: str = REWARD, against: str = "") -> Iterator[bytes]:
    """Give a run's answers, and the chains and paragraphs behind them, as a file in that form.

    form: `jsonl` has everything recorded of each question, one JSON object a line; `hotpotqa` and `musique` are what
    those datasets' official evaluation scripts read; `trec` and `qrels` are rankings and judgements for trec_eval, and
    `trec-steps` and `qrels-steps` the same with each search as a topic; `chat` is what a model was shown and wrote,
    and `preferences` pairs of these from two runs, for training; `inspect` is a log of Inspect (`.eval`); `otlp` is
    traces of OpenTelemetry; `parquet` and `card` make a dataset of Hugging Face's library; `seen` is every paragraph
    that the run found, for a corpus.
    reward: the metric, or the judge (`correct/gpt-4.1`), that rewards an answer, in `chat` and `preferences`.
    against: the other run of `preferences`.
    """
    with reading() as connection:
        rival = _rival(connection, find_run(connection, against), reward) if against else None
        source = _source(connection, find_run(connection, run), reward)
        questions = read_questions(connection, source.record.id)
        yield from lines(replace(source, questions=questions, rival=rival), form)


def _source(connection: Connection, record: RunRecord, reward: str) -> Source:
    return Source(record=record, verdicts=verdicts_by_question(connection, record), reward=reward)


def _rival(connection: Connection, record: RunRecord, reward: str) -> Rival:
    def find(key: str) -> TracedQuestion | None:
        try:
            found = read_question(connection, record.id, key)
        except UnknownNameError:
            return None
        return found if found.key == key else None  # not the one with that number

    return Rival(source=_source(connection, record, reward), find=find)
