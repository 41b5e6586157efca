"""`cotrail index`: makes a corpus searchable."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from cli.output import Json, console, count, duration, print_json
from configuration.settings import settings
from cotrail.common.short_digests import shortened
from cotrail.data.corpora.files import read_corpus


class Indexed(Struct, frozen=True, kw_only=True):
    """A corpus that was just indexed."""

    corpus: str
    paragraphs: int
    revision: str
    seconds: float


def index(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help='Files of `{"id", "title", "text"}`, one JSON object a line, '
            "or question files of HotpotQA, 2WikiMultihopQA (`.json`) and MuSiQue (`.jsonl`), "
            "whose contexts are taken, or of StrategyQA, whose facts are, or StrategyQA's paragraphs. "
            "`cotrail data build` makes IRCoT's corpora.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str, typer.Option("--name", metavar="CORPUS", help="What runs call the corpus.", show_default=False)
    ],
    *,
    json: Json = False,
) -> None:
    """Index paragraphs as a corpus; one of that name is replaced once the new one is whole.

    It is kept in a folder, or in the search server that COTRAIL_SEARCH_URL names.

    Example: `cotrail index corpus.jsonl --name mine`
    """
    with _progress(shown=not json) as progress:
        done = build(paths, name, progress)
    if json:
        print_json(done)
        return
    console().print(f"Indexed {count(done.paragraphs, 'paragraph')} as {name} in {duration(done.seconds)}.")
    console().print(f"Revision {shortened(done.revision)}", style="dim")


def build(paths: list[Path], name: str, progress: Callable[[int], None] | None = None) -> Indexed:
    """Indexes the files as the corpus of that name."""
    started = time.monotonic()
    manifest = settings().corpus_store.build(name, read_corpus(paths), progress)
    return Indexed(
        corpus=name,
        paragraphs=manifest.paragraphs,
        revision=manifest.revision,
        seconds=time.monotonic() - started,
    )


@contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[int], None]]:
    columns = (TextColumn("Indexing"), BarColumn(), TextColumn("{task.completed:,} paragraphs"), TimeElapsedColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not (shown and screen.is_terminal)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done: bar.update(task, completed=done)
