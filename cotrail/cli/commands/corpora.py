"""`cotrail index`, `cotrail search`, `cotrail corpora`: corpora are indexed, searched by hand, listed and removed."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cotrail.cli.request_options import Json, argument, option
from cotrail.cli.terminal.following import LINE_SECONDS, at_intervals, follow_job
from cotrail.cli.terminal.output import console, grid, heading, print_json, print_rows, titled
from cotrail.common.humanize import count, duration, moment, percent, size
from cotrail.common.printable_text import cut
from cotrail.common.structs import assigned, shortened
from cotrail.data.corpora.document_names import SUFFIXES
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.engines.retrieval.fusion import FUSED_HITS
from cotrail.engines.retrieval.manifest import similarity_of
from cotrail.errors import InputError
from cotrail.services.library import corpora as operations
from cotrail.services.library.corpora import CorpusHit, Found, Indexed, ListedCorpus
from cotrail.services.operations.operation import is_remote
from cotrail.services.runs import jobs
from cotrail.services.runs.jobs import IndexRequest, model_in
from cotrail.services.runs.speed import WatchedRun

COLUMNS = titled("corpus", "paragraphs", "revision", "size", "built", right=("paragraphs", "size"))


def corpora(
    words: Annotated[list[str] | None, argument("corpora.words")] = None,
    *,
    yes: Annotated[bool, option("corpora.yes")] = False,
    json: Json = False,
) -> None:
    """List the indexed corpora, show one, or remove one permanently (`cotrail corpora remove NAME`).

    They are those of the folder, of the search server that COTRAIL_SEARCH_URL names, and of search.toml. Runs keep what
    they found in a corpus that is removed; a run that still searches it has to end first.
    """
    match words or []:
        case []:
            _list(json=json)
        case [name]:
            _show(name, json=json)
        case ["remove", name]:
            _remove(name, yes=yes, json=json)
        case _:
            raise InputError("`cotrail corpora NAME` shows a corpus, `cotrail corpora remove NAME` removes it")


def _list(*, json: bool) -> None:
    entries = operations.list_corpora()
    if json:
        print_json(entries)
    elif entries:
        print_rows(console(), COLUMNS, [_row(each) for each in entries])
    else:
        console().print("No corpora yet. `cotrail index FILE --name NAME` makes one.")


def _show(name: str, *, json: bool) -> None:
    description = operations.describe_corpus(name)
    if json:
        print_json(description)
        return
    about = grid("dim", "")
    about.add_row("paragraphs", _paragraphs(description))
    about.add_row("revision", description.revision)
    about.add_row("engine", description.engine or "-")
    about.add_row("analyzer", description.analyzer)
    if description.cut:
        about.add_row("cut", f"{count(description.cut, 'paragraph')} longer than the model reads")
    if description.recall is not None:
        about.add_row("search", f"approximate, finds {percent(description.recall)} of what exact search does")
    about.add_row("size", _size(description))
    about.add_row("built", _built(description))
    about.add_row("where", description.location)
    screen = console()
    screen.print(heading(description.corpus))
    screen.print(about)


def _remove(name: str, *, yes: bool, json: bool) -> None:
    size = count(operations.describe_corpus(name).paragraphs or 0, "paragraph")
    if not yes and not sys.stdin.isatty():
        raise InputError(f"the corpus {name!r} with {size} would be removed permanently; confirm with --yes")
    if not yes:
        typer.confirm(f"Remove the corpus {name} with {size} permanently?", abort=True)
    removed = operations.remove_corpus(name)
    if json:
        print_json(removed)
    else:
        console().print(f"Removed {name} with {size}.", soft_wrap=True)


def _row(each: ListedCorpus) -> list[str]:
    return [each.corpus, _paragraphs(each), shortened(each.revision), _size(each), _built(each)]


def _paragraphs(each: ListedCorpus) -> str:
    return "-" if each.paragraphs is None else f"{each.paragraphs:,}"


def _size(each: ListedCorpus) -> str:
    return "-" if each.bytes is None else size(each.bytes)


def _built(each: ListedCorpus) -> str:
    return "-" if each.built_at is None else moment(each.built_at)


def search(
    corpus: Annotated[str, argument("search.corpus")],
    query: Annotated[str, argument("search.query")],
    *,
    k: Annotated[int, option("search.k")] = 10,
    retriever: Annotated[str | None, option("search.retriever")] = None,
    filter_: Annotated[str | None, option("search.filter", "--filter")] = None,
    explain: Annotated[bool, option("search.explain")] = False,
    json: Json = False,
) -> None:
    """Search a corpus by hand: what a system would find with this query.

    Example: `cotrail search mine "Where was Marit Aune born?" --explain`
    """
    found = operations.search_corpus(corpus, query, k, retriever=retriever, filter=filter_)
    lists: dict[str, Found] = {}
    if explain and (kind := similarity_of(operations.describe_corpus(corpus).analyzer)):
        whole = partial(operations.search_corpus, corpus, query, max(k, FUSED_HITS), filter=filter_)
        lists = {way: whole(retriever=way) for way in ("bm25", kind)}
    if json:
        print_json({"found": found, "lists": lists} if explain else found)
        return
    if not found.paragraphs:
        console().print(f"Nothing in {corpus} is found by that.", soft_wrap=True)
        return
    places = {way: {each.id: each for each in listed.paragraphs} for way, listed in lists.items()}
    ranks = (" ", "score", *(f"by {way}" for way in places))
    columns = titled(*ranks, "id", "paragraph", "words of the query", right=ranks)
    print_rows(console(), columns, [_hit(each, places) for each in found.paragraphs])


def _hit(hit: CorpusHit, places: Mapping[str, Mapping[str, CorpusHit]]) -> list[str]:
    listed = (by_id.get(hit.id) for by_id in places.values())
    ranks = [f"{each.rank} ({each.score:.4g})" if each else "-" for each in listed]
    paragraph = cut(f"{hit.title}: {hit.text}" if hit.title else hit.text, 70)
    return [str(hit.rank), f"{hit.score:.4g}", *ranks, hit.id, paragraph, ", ".join(hit.matched[:8])]


AS_IN = "as in `cotrail index corpus.jsonl --name mine`"


def index(
    paths: Annotated[list[Path] | None, argument("index.paths")] = None,
    name: Annotated[str | None, option("index.name")] = None,
    *,
    again: Annotated[str | None, option("index.again")] = None,
    engine: Annotated[str | None, option("index.engine")] = None,
    dense: Annotated[str | None, option("index.dense")] = None,
    late: Annotated[str | None, option("index.late")] = None,
    fields: Annotated[list[str] | None, option("index.fields")] = None,
    changes: Annotated[list[str] | None, option("index.changes")] = None,
    queued: Annotated[bool, option("index.queued")] = False,
    json: Json = False,
) -> None:
    """Index paragraphs as a corpus; one of that name is replaced once the new one is complete.

    Examples: `cotrail index corpus.jsonl --name mine` · `cotrail index --add mine --dense MODEL`
    """
    name = _name(paths or (), again, name)
    settings = _settings({"model": dense, "late": late}, fields or (), changes or ())
    if again and not settings and engine is None:
        raise InputError("--add indexes a corpus in another way: --dense, --late, --field, --engine or --set")
    if not is_remote() and (named := operations.needing(name)):
        said = f"Runs that haven't ended search {name} ({named}): it is replaced only by the same paragraphs."
        console(stderr=True).print(said, soft_wrap=True, style="yellow")
    size = partial(_all, paths or (), again, settings.get("model"))
    with _progress(size, visible=not json) as progress:
        if is_remote():
            if again:
                raise InputError("--add is for corpora of this machine; a server indexes files that are uploaded")
            files = tuple(map(str, paths or ()))
            request = IndexRequest(name=name, files=files, engine=engine, settings=settings, queued=queued)
            built = follow_job(jobs.make_corpus(request), lambda job: progress(job.progress)).outcome(Indexed)
        else:
            if queued:
                from cotrail.services.runs.indexing import embed  # it needs numpy

                paragraphs = operations.every(again) if again else read_corpus(paths or ())
                embed(paragraphs, model_in(settings), _embedding(progress))
            new = NewIndex(engine=engine, settings=settings, progress=progress)
            built = operations.index_again(again, name, new) if again else operations.index(paths or (), name, new)
    if json:
        print_json(built)
        return
    _print_built(built, name)


def _print_built(built: Indexed, name: str) -> None:
    console().print(f"Indexed {count(built.paragraphs, 'paragraph')} as {name} in {duration(built.seconds)}.")
    if built.left_out:
        named = ", ".join(built.such_as) + (", ..." if built.left_out > len(built.such_as) else "")
        rule = f"of a folder, corpus.jsonl alone is read, else documents ({', '.join(SUFFIXES)}), else files of records"
        left_out = f"{count(built.left_out, 'other file')} left out ({named}): {rule}."
        console().print(left_out, style="dim", soft_wrap=True)
    if built.repeated:
        twice = f"{count(built.repeated, 'paragraph')} left out, as others have the same title, text and fields."
        console().print(twice, style="yellow", soft_wrap=True)
    if built.cut:
        longer = f"{count(built.cut, 'paragraph')} longer than the model reads: their beginnings alone are compared."
        console().print(longer, style="yellow", soft_wrap=True)
    if built.recall is not None:
        console().print(f"Approximate search finds {percent(built.recall)} of what exact search does.")
    console().print(f"Revision {shortened(built.revision)}", style="dim")


def _name(paths: Sequence[Path], again: str | None, name: str | None) -> str:
    """What the corpus is called; raises InputError where its paragraphs, or its name, aren't given."""
    if paths and again:
        raise InputError("files and --add, a corpus that is there, are two ways to give paragraphs; leave out one")
    if not (paths or again):
        raise InputError(f"PATH is missing, {AS_IN}: files, folders, or --add CORPUS; see `cotrail index --help`")
    if found := name or again:
        return found
    raise InputError(f"--name is missing, {AS_IN}: What runs call the corpus; see `cotrail index --help`")


def _settings(models: Mapping[str, str | None], fields: Iterable[str], changes: Iterable[str]) -> dict[str, Any]:
    """The settings of the index; raises InputError where more than one of the models is given."""
    kinds = {name: kind or "word" for name, _, kind in (each.partition(":") for each in fields)}
    model = {setting: name for setting, name in models.items() if name is not None}
    if len(model) > 1:
        raise InputError("a corpus has one kind of embeddings: leave out --dense or --late, or index a second corpus")
    return model | ({"fields": kinds} if kinds else {}) | assigned(changes)


Shown = Callable[..., None]
"""Called with the number of paragraphs so far; what: is done with them; waits_for: what for, where nothing happens."""


@contextmanager
def _progress(size: Callable[[], int | None], *, visible: bool) -> Iterator[Shown]:
    """size: the number of all paragraphs, which is asked for where a bar shows it."""
    screen = console(stderr=True)
    words, counted = TextColumn("{task.description}"), TextColumn("{task.fields[counted]}")
    columns = (words, BarColumn(), counted, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not (visible and screen.is_terminal)) as bar:
        task = bar.add_task("Indexing", total=None if bar.disable else size(), counted="")

        def show(done: int, what: str = "Indexing", waits_for: str = "") -> None:
            counted = f"{count(done, 'paragraph')} {waits_for}".rstrip()
            bar.update(task, description=what, completed=done, counted=counted)

        yield show


def _embedding(show: Shown) -> Callable[[int, WatchedRun], None]:
    """Shows how far workers are: a bar, and a line at intervals where something is waited for or there is no bar."""
    lines = at_intervals(console(stderr=True), LINE_SECONDS, str, lambda _: False)

    def report(done: int, watched: WatchedRun) -> None:
        waits_for = watched.waits_for or ""
        show(done, "Embedding", waits_for)
        if (done or waits_for) and not console(stderr=True).is_terminal:
            lines(f"{count(done, 'paragraph')} embedded. {waits_for}".rstrip())

    return report


def _all(paths: Sequence[Path], again: str | None, model: str | None) -> int | None:
    """How many paragraphs there are to embed; None where that isn't what takes the time, or a server knows."""
    if model is None or is_remote():
        return None
    return operations.describe_corpus(again).paragraphs if again else sum(1 for _ in read_corpus(paths))
