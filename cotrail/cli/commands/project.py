"""`cotrail project`: teams' own parts of the service."""

from typing import Annotated, Any

import typer
from msgspec import UNSET, UnsetType

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import console, print_json
from cotrail.common.humanize import size
from cotrail.errors import InputError
from cotrail.services.access import projects
from cotrail.services.access.projects import Changes, NewProject, ProjectRecord

project = typer.Typer(no_args_is_help=True, help="Make, list and change projects of the service.")

COLUMNS = (
    Column(title="project"),
    Column(title="corpora"),
    Column(title="models"),
    Column(title="open questions", right=True),
    Column(title="money", right=True),
    Column(title="stored", right=True),
)
ALL, NONE = "all", "none"

Name = Annotated[str, typer.Argument(metavar="NAME", help="The project's name.", show_default=False)]
Corpora = Annotated[
    list[str] | None,
    typer.Option("--corpus", metavar="NAME", help="A corpus that it may search, `all`, or `none`.", show_default=False),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="NAME", help="A model that it may use, `all`, or `none`.", show_default=False),
]
OpenQuestions = Annotated[
    str | None,
    typer.Option(
        "--open-questions", metavar="NUMBER", help="How many may be open at once, or `all`.", show_default=False
    ),
]
Money = Annotated[
    str | None,
    typer.Option(
        "--money", metavar="DOLLARS", help="How many US dollars its runs may spend, or `all`.", show_default=False
    ),
]
StoredBytes = Annotated[
    str | None,
    typer.Option(
        "--stored-bytes", metavar="NUMBER", help="How many its uploaded files may take, or `all`.", show_default=False
    ),
]


@project.command()
def create(
    name: Name,
    *,
    corpus: Corpora = None,
    model: Models = None,
    open_questions: OpenQuestions = None,
    money: Money = None,
    stored_bytes: StoredBytes = None,
    json: Json = False,
) -> None:
    """Make a project: a team's own runs, corpora and experiments, which others don't see.

    It may use none of the corpora of others and no models but those named, and nothing else is limited.
    """
    changes = _changes(corpus, model, open_questions, money, stored_bytes)
    made = projects.create_project(NewProject(name=name, **changes))
    _report(made, "is made", json=json)


@project.command("set")
def change(
    name: Name,
    *,
    corpus: Corpora = None,
    model: Models = None,
    open_questions: OpenQuestions = None,
    money: Money = None,
    stored_bytes: StoredBytes = None,
    json: Json = False,
) -> None:
    """Change what a project may use, or its quotas; what isn't named stays."""
    changed = projects.change_project(name, Changes(**_changes(corpus, model, open_questions, money, stored_bytes)))
    _report(changed, "is changed", json=json)


@project.command("list")
def index(*, json: Json = False) -> None:
    """List projects with what they may use, and their quotas."""
    listed = projects.list_projects()
    if json:
        print_json(listed)
    else:
        print_rows(console(), COLUMNS, [_row(each) for each in listed])


def _changes(
    corpora: list[str] | None,
    models: list[str] | None,
    open_questions: str | None,
    money: str | None,
    stored_bytes: str | None,
) -> dict[str, Any]:
    return {
        "corpora": _names(corpora),
        "models": _names(models),
        "open_questions": _number(open_questions, int, "open questions"),
        "money": _number(money, float, "dollars"),
        "stored_bytes": _number(stored_bytes, int, "bytes"),
    }


def _names(given: list[str] | None) -> tuple[str, ...] | UnsetType | None:
    match given:
        case None | []:
            return UNSET
        case [only] if only == ALL:
            return None
        case [only] if only == NONE:
            return ()
    return tuple(given)


def _number(text: str | None, type_: type[int | float], what: str) -> float | UnsetType | None:
    if text is None or text == ALL:
        return UNSET if text is None else None
    try:
        return type_(text)
    except ValueError:
        raise InputError(f"{text!r} is no number of {what}; write one, or `{ALL}`") from None


def _report(record: ProjectRecord, done: str, *, json: bool) -> None:
    if json:
        print_json(record)
    else:
        console().print(f"The project {record.name} {done}.", soft_wrap=True)


def _row(each: ProjectRecord) -> list[str]:
    def listed(names: tuple[str, ...] | None) -> str:
        return ALL if names is None else ", ".join(names) or NONE

    questions = "-" if each.open_questions is None else f"{each.open_questions:,}"
    money = "-" if each.money is None else f"${each.money:,.2f}"
    stored = "-" if each.stored_bytes is None else size(each.stored_bytes)
    return [each.name, listed(each.corpora), listed(each.models), questions, money, stored]
