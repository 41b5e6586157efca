"""`cotrail index`: makes a corpus searchable."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.following import follow_job
from cotrail.cli.terminal.output import console, print_json
from cotrail.common.canonical_json import shortened
from cotrail.common.humanize import count, duration
from cotrail.common.structs import assigned
from cotrail.data.corpora.document_names import SUFFIXES
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.services.library import corpora
from cotrail.services.library.corpora import Indexed
from cotrail.services.operations.operation import is_remote
from cotrail.services.runs import jobs
from cotrail.services.runs.jobs import IndexRequest


def index(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help='Files of `{"id", "title", "text"}`, one JSON object a line, or of the same under the names of BEIR, '
            "Pyserini or DPR; Markdown (`.md`) and text files (`.txt`), or folders of these, which are cut into "
            "passages; or question files of HotpotQA, 2WikiMultihopQA (`.json`) and MuSiQue (`.jsonl`), "
            "whose contexts are taken, or of StrategyQA, whose facts are, or StrategyQA's paragraphs. "
            "`cotrail data build` makes IRCoT's corpora.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str, typer.Option("--name", metavar="CORPUS", help="What runs call the corpus.", show_default=False)
    ],
    *,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="What searches the corpus: tantivy in a folder, or the search server that COTRAIL_SEARCH_URL names; "
            "that server where there is one.",
            show_default=False,
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting of the engine. May be repeated.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Index paragraphs as a corpus; one of that name is replaced once the new one is complete.

    Examples: `cotrail index corpus.jsonl --name mine` · `cotrail index notes/ --name notes`
    """
    settings = assigned(changes or ())
    if not is_remote() and (named := corpora.needing(name)):
        said = f"Runs that haven't ended search {name} ({named}): it is replaced only by the same paragraphs."
        console(stderr=True).print(said, soft_wrap=True, style="yellow")
    with _progress(visible=not json) as progress:
        if is_remote():
            request = IndexRequest(name=name, files=tuple(map(str, paths)), engine=engine, settings=settings)
            built = follow_job(jobs.make_corpus(request), lambda job: progress(job.progress)).outcome(Indexed)
        else:
            built = corpora.index(paths, name, progress, NewIndex(engine=engine, settings=settings))
    if json:
        print_json(built)
        return
    console().print(f"Indexed {count(built.paragraphs, 'paragraph')} as {name} in {duration(built.seconds)}.")
    if built.left_out:
        left_out = f"{count(built.left_out, 'other file')} left out: of a folder, {', '.join(SUFFIXES)} are read."
        console().print(left_out, style="dim")
    console().print(f"Revision {shortened(built.revision)}", style="dim")


@contextmanager
def _progress(*, visible: bool) -> Iterator[Callable[[int], None]]:
    columns = (TextColumn("Indexing"), BarColumn(), TextColumn("{task.fields[counted]}"), TimeElapsedColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not (visible and screen.is_terminal)) as bar:
        task = bar.add_task("", total=None, counted="")
        yield lambda done: bar.update(task, completed=done, counted=count(done, "paragraph"))
