"""`cotrail export`: a run's results as files that other programs read."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from cli.output import encode_json
from cli.store import RunName, reading
from cotrail.errors import InputError
from models.queries.progress import RunRecord, read_run, resolve_run
from models.queries.traces import Collected, TracedQuestion, read_questions
from services.scoring import is_gold, scores_of

Format = Literal["jsonl", "hotpotqa", "musique"]


def export(
    run: RunName,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="`jsonl`: all about each question, one JSON object a line. "
            "`hotpotqa`, `musique`: what those datasets' official evaluation scripts read.",
        ),
    ] = "jsonl",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="Write into this file instead.")
    ] = None,
) -> None:
    """Write a run's answers, and the chains and paragraphs behind them.

    Example: `cotrail export latest --format jsonl --output run.jsonl`
    """
    with reading() as connection:
        record = read_run(connection, resolve_run(connection, run))
        chunks = lines(record, read_questions(connection, record.id), form)
        if output is None:
            sys.stdout.buffer.writelines(chunks)
            sys.stdout.buffer.flush()
        else:
            _write(output, chunks)


def lines(record: RunRecord, questions: Iterable[TracedQuestion], form: Format) -> Iterator[bytes]:
    """The lines of the file in that format."""
    match form:
        case "jsonl":
            for question in questions:
                yield encode_json(row(record, question)) + b"\n"
        case "musique":
            for question in questions:
                yield encode_json(_musique(question)) + b"\n"
        case "hotpotqa":
            yield encode_json(_hotpotqa(questions)) + b"\n"


def row(record: RunRecord, question: TracedQuestion) -> dict[str, Any]:
    """All about a question; of an unfinished one, what there is so far, with scores of 0."""
    return {
        "question_id": question.key,
        "question": question.text,
        "status": question.status,
        "answer": question.answer,
        "gold_answers": question.answers,
        "sentences": question.sentences,
        "paragraphs": [_paragraph(each, question) for each in question.collected],
        "gold_paragraphs": question.gold,
        **msgspec.structs.asdict(scores_of(record, question)),
        "reason": question.reason,
    }


def _paragraph(each: Collected, question: TracedQuestion) -> dict[str, Any]:
    return {
        "id": each.paragraph.id,
        "title": each.paragraph.title,
        "text": each.paragraph.text,
        "step": each.step,
        "rank": each.rank,
        "score": each.score,
        "query": each.query,
        "gold": is_gold(each.paragraph, question.gold),
    }


def _musique(question: TracedQuestion) -> dict[str, Any]:
    """The support indexes count within the dataset's own paragraphs, which a search of a corpus doesn't know."""
    return {
        "id": question.key,
        "predicted_answer": question.answer or "",
        "predicted_support_idxs": [],
        "predicted_answerable": True,
    }


def _hotpotqa(questions: Iterable[TracedQuestion]) -> dict[str, Any]:
    """Supporting facts as the first sentence of each collected paragraph: cotrail retrieves whole paragraphs."""
    answers, facts = {}, {}
    for question in questions:
        answers[question.key] = question.answer or ""
        facts[question.key] = [[paragraph.title, 0] for paragraph in question.paragraphs]
    return {"answer": answers, "sp": facts}


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    """Puts the file in place once it is whole."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("wb") as file:
            file.writelines(chunks)
        draft.replace(path)
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); choose another --output") from error
    finally:
        draft.unlink(missing_ok=True)
