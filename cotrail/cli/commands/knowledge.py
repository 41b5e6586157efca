"""`cotrail knowledge`: builds, lists and queries the knowledge sources."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from cotrail.cli.request_options import Json, argument, option, refuse_elsewhere
from cotrail.cli.terminal.output import Column, console, in_json, print_rows
from cotrail.common.humanize import duration, number
from cotrail.common.optional_packages import installed_with
from cotrail.common.structs import shortened
from cotrail.configuration.settings import settings
from cotrail.engines.knowledge.database import About, ReadingProgress
from cotrail.engines.knowledge.store import NEEDED_FILES, SOURCES, find_source
from cotrail.services.library import corpora
from cotrail.services.library.corpora import SourceState, knowledge_store

knowledge = typer.Typer(
    name="knowledge", help="Build and query the knowledge sources of Rethinking with Retrieval.", no_args_is_help=True
)

SourceName = Annotated[str, argument("knowledge.source", words={"sources": ", ".join(SOURCES)})]


class BuiltSource(Struct, frozen=True, kw_only=True):
    """A source that was just built; counts: its contents and what was skipped, by noun."""

    source: str
    revision: str
    counts: dict[str, int]
    seconds: float


@knowledge.command()
def build(
    source: SourceName,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="The files that it is built from. "
            + " ".join(f"{name}: {needs}." for name, needs in NEEDED_FILES.items()).replace("`", ""),
            show_default=False,
        ),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """Build a source from its publisher's files; the former one is used until the new one is complete.

    Example: `cotrail knowledge build conceptnet conceptnet-assertions-5.7.0.csv.gz`
    """
    refuse_elsewhere("`cotrail knowledge build`")
    started = time.monotonic()
    with _progress(visible=not json) as show:
        about = knowledge_store().build(find_source(source), paths or [], show)
    _report(source, about, time.monotonic() - started, json=json)


@knowledge.command()
def wikidata(
    names: Annotated[list[str], option("knowledge.wikidata.fetch")],
    url: Annotated[str, option("knowledge.wikidata.url")],
    *,
    json: Json = False,
) -> None:
    """Add entities to the source wikidata from a server; runs never ask one, so that they can be repeated.

    Example: `cotrail knowledge wikidata --fetch Q868 --fetch "Shanghai Noon" --url https://www.wikidata.org/w/api.php`
    """
    refuse_elsewhere("`cotrail knowledge wikidata`")
    with installed_with("knowledge"):
        from cotrail.engines.knowledge.wikidata.building import fetch_wikidata
    started = time.monotonic()
    about = fetch_wikidata(names, url, settings().knowledge_path / "wikidata")
    _report("wikidata", about, time.monotonic() - started, json=json)


@knowledge.command(name="list")
def list_sources(*, json: Json = False) -> None:
    """List the sources, and which of them are built."""
    rows = corpora.list_sources()
    if in_json(rows, json=json):
        return
    print_rows(console(), (Column(style="bold"), Column(style="dim"), Column()), [_row(each) for each in rows])


@knowledge.command()
def ask(
    source: SourceName,
    text: Annotated[str, argument("knowledge.ask.text")],
    other: Annotated[str, argument("knowledge.ask.other")] = "",
    *,
    json: Json = False,
) -> None:
    """Print a source's hits for a text, the best first.

    Example: `cotrail knowledge ask wordnet "The elevation of Curitiba is 934.6 m." "Curitiba is above sea level."`
    """
    hits = corpora.look_up(source, text, other)
    if in_json(hits, json=json):
        return
    if not hits:
        console().print(f"{source} knows nothing of that.")
        return
    columns = Column(style="dim"), Column(right=True), Column(style="dim"), Column()
    rows = [[str(hit.rank), number(hit.score), hit.paragraph.id, hit.paragraph.text] for hit in hits]
    print_rows(console(), columns, rows)


def _row(each: SourceState) -> list[str]:
    contents = _counted(each.counts) if each.revision else f"not built; is built from {NEEDED_FILES[each.source]}"
    return [each.source, shortened(each.revision or "-"), contents]


def _report(source: str, about: About, seconds: float, *, json: bool) -> None:
    revision = knowledge_store().revision(find_source(source))
    if in_json(BuiltSource(source=source, revision=revision, counts=about.counts, seconds=seconds), json=json):
        return
    console().print(f"Built {source} in {duration(seconds)}: {_counted(about.counts)}.", soft_wrap=True)
    console().print(f"Revision {shortened(revision)}", style="dim")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{noun.replace('_', ' ')}: {count:,}" for noun, count in counts.items())


@contextmanager
def _progress(*, visible: bool) -> Iterator[Callable[[ReadingProgress], None]]:
    columns = (TextColumn("Building"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    screen = console(stderr=True)
    with Bar(*columns, console=screen, transient=True, disable=not (visible and screen.is_terminal)) as bar:
        task = bar.add_task("", total=None)
        yield lambda progress: bar.update(task, completed=progress.done, total=progress.total)
