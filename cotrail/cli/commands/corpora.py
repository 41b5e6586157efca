"""`cotrail corpora`: the indexed corpora, and their removal."""

import sys
from typing import Annotated

import typer

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import console, grid, heading, print_json
from cotrail.common.canonical_json import shortened
from cotrail.common.humanize import count, moment, size
from cotrail.errors import InputError
from cotrail.services.library import corpora as operations
from cotrail.services.library.corpora import ListedCorpus

COLUMNS = (
    Column(title="corpus"),
    Column(title="paragraphs", right=True),
    Column(title="revision"),
    Column(title="size", right=True),
    Column(title="built"),
)


def corpora(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME | remove NAME", help="A corpus to show, or to remove.", show_default=False),
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask before a corpus is removed.")] = False,
    json: Json = False,
) -> None:
    """List the indexed corpora, show one, or remove one permanently (`cotrail corpora remove NAME`).

    They are those of the folder, and of the search server that COTRAIL_SEARCH_URL names. Runs keep what they found in a
    corpus that is removed; a run that still searches it has to end first.
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
    about.add_row("paragraphs", f"{description.paragraphs:,}")
    about.add_row("revision", description.revision)
    about.add_row("engine", description.engine or "-")
    about.add_row("analyzer", description.analyzer)
    about.add_row("size", _size(description))
    about.add_row("built", _built(description))
    about.add_row("where", description.location)
    screen = console()
    screen.print(heading(description.corpus))
    screen.print(about)


def _remove(name: str, *, yes: bool, json: bool) -> None:
    size = count(operations.describe_corpus(name).paragraphs, "paragraph")
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
    return [each.corpus, f"{each.paragraphs:,}", shortened(each.revision), _size(each), _built(each)]


def _size(each: ListedCorpus) -> str:
    return "-" if each.bytes is None else size(each.bytes)


def _built(each: ListedCorpus) -> str:
    return "-" if each.built_at is None else moment(each.built_at)
