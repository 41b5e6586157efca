"""`cotrail export`: a run's results as files that other programs read."""

import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.output import console, print_json
from cotrail.common.humanize import count
from cotrail.errors import InputError
from cotrail.services.results import exporting
from cotrail.services.runs import labels


def export(
    run: RunName,
    form: Annotated[
        Literal["jsonl", "hotpotqa", "musique", "browsecomp-plus"],
        typer.Option(
            "--format",
            help="`jsonl`: everything recorded for each question, one JSON object a line. "
            "`hotpotqa`, `musique`: what those datasets' official evaluation scripts read. "
            "`browsecomp-plus`: what its script reads, a folder of a file for each question.",
        ),
    ] = "jsonl",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="Write into this file, or folder, instead.")
    ] = None,
    *,
    json: Json = False,
) -> None:
    """Write a run's answers, and the chains and paragraphs behind them.

    A line of `jsonl` has what judges say of its question, too (`verdicts`). Without --output, which a folder needs,
    they are printed, in the form of --format, and --json changes nothing.

    Example: `cotrail export latest --format jsonl --output run.jsonl`
    """
    if form == "browsecomp-plus":
        found = labels.identify(run)
        _write_folder(output, map(_file, _lines(exporting.export_files(found.run))))
    elif output is None:
        sys.stdout.buffer.writelines(exporting.export_answers(run, form))
        sys.stdout.buffer.flush()
        return
    else:
        found = labels.identify(run)
        _write(output, exporting.export_answers(found.run, form))
    if json:
        print_json({"run": found.run, "format": form, "output": str(output), "questions": found.questions})
    else:
        console().print(f"Wrote {output} with {count(found.questions, 'question')}.", soft_wrap=True)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of what comes in pieces, wherever these end."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


def _file(line: bytes) -> tuple[str, bytes]:
    """The name of a file and its content."""
    name, text = msgspec.json.decode(line, type=tuple[str, str])
    return Path(name).name, text.encode()


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


def _write_folder(path: Path | None, files: Iterable[tuple[str, bytes]]) -> None:
    """The same with a folder of files, which may be there if it is empty."""
    if path is None:
        raise InputError("--format browsecomp-plus writes a file for each question; name their folder with --output")
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.mkdir()
        for name, content in files:
            (draft / name).write_bytes(content)
        draft.replace(path)
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); choose a new folder as --output") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
