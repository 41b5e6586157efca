"""`cotrail export`: a run's results as files that other programs read."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import RunName
from cotrail.errors import InputError
from models.queries.runs import read_run, resolve_run
from models.queries.traces import read_questions
from services.exporting import Format, lines
from services.store import reading


def export(
    run: RunName,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="`jsonl`: everything recorded for each question, one JSON object a line. "
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


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    """Writes a draft beside the file and then renames it, so that a partial file is never seen."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("wb") as file:
            file.writelines(chunks)
        draft.replace(path)
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); choose another --output") from error
    finally:
        draft.unlink(missing_ok=True)
