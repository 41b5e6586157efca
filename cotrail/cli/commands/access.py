"""`cotrail project` and `cotrail token`: who may use the service, and how much of it."""

import re
from typing import Annotated, Any

import typer
from msgspec import UNSET, UnsetType

from cotrail.cli.request_options import Json, argument, option
from cotrail.cli.terminal.output import console, in_json, print_json, print_rows, titled
from cotrail.common.humanize import moment, size
from cotrail.errors import InputError
from cotrail.services.access import projects, tokens
from cotrail.services.access.projects import Changes, NewProject, ProjectRecord
from cotrail.services.access.tokens import TokenRecord
from cotrail.services.actor import Scope

project = typer.Typer(no_args_is_help=True, help="Make, list and change projects of the service.")

LIMITS = ("open questions", "money", "stored")
COLUMNS = titled("project", "corpora", "models", *LIMITS, right=LIMITS)
ALL, NONE = "all", "none"

Name = Annotated[str, argument("project.name")]
Corpora = Annotated[list[str] | None, option("project.corpus")]
Models = Annotated[list[str] | None, option("project.model")]
OpenQuestions = Annotated[str | None, option("project.open-questions")]
Money = Annotated[str | None, option("project.money")]
StoredBytes = Annotated[str | None, option("project.stored-bytes")]


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
    if not in_json(listed, json=json):
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
    if not in_json(record, json=json):
        console().print(f"The project {record.name} {done}.", soft_wrap=True)


def _row(each: ProjectRecord) -> list[str]:
    def listed(names: tuple[str, ...] | None) -> str:
        return ALL if names is None else ", ".join(names) or NONE

    questions = "-" if each.open_questions is None else f"{each.open_questions:,}"
    money = "-" if each.money is None else f"${each.money:,.2f}"
    stored = "-" if each.stored_bytes is None else size(each.stored_bytes)
    return [each.name, listed(each.corpora), listed(each.models), questions, money, stored]


token = typer.Typer(no_args_is_help=True, help="Make, list and revoke tokens of the service.")

TOKEN_COLUMNS = titled("id", "name", "project", "allows", "created", "used", "until")

_LIFETIME = re.compile(r"(\d+)(h|d)?")
_DAYS = {"h": 1 / 24, "d": 1.0}


@token.command("create")
def create_token(
    name: Annotated[str, argument("token.create.name")],
    *,
    scope: Annotated[list[Scope], option("token.create.scope")],
    project: Annotated[str | None, option("token.create.project")] = None,
    expires: Annotated[str | None, option("token.create.expires")] = None,
    json: Json = False,
) -> None:
    """Make a token, and print its secret: the only time that it is shown."""
    made = tokens.create_token(name, scope, project=project, days=None if expires is None else _days(expires))
    if in_json(made, json=json):
        return
    screen = console()
    screen.print(made.secret, soft_wrap=True)
    console(stderr=True).print(
        f"Token {made.id} of the project {made.project} allows: {', '.join(made.scopes)}. Keep the secret now: it "
        "isn't shown again. Programs send it as `Authorization: Bearer SECRET`, cotrail takes it from COTRAIL_TOKEN.",
        soft_wrap=True,
    )


@token.command("list")
def list_tokens(*, json: Json = False) -> None:
    """List tokens, the newest first, those that expired or were revoked too."""
    listed = tokens.list_tokens()
    if json:
        print_json(listed)
    elif listed:
        print_rows(console(), TOKEN_COLUMNS, [_token_row(each) for each in listed])
    else:
        console().print("No tokens yet. `cotrail token create NAME --scope read` makes one.")


@token.command("revoke")
def revoke(token: Annotated[str, argument("token.revoke.token")], *, json: Json = False) -> None:
    """Revoke a token for good. Processes of the service take it for five more seconds."""
    revoked = tokens.revoke_token(token)
    if not in_json(revoked, json=json):
        console().print(f"Token {revoked.id} is revoked.", soft_wrap=True)


def _days(text: str) -> float:
    match = _LIFETIME.fullmatch(text)
    if match is None or not int(match[1]):
        raise InputError(f"{text!r} is no time: write a number of days as 90d, or of hours as 12h")
    return int(match[1]) * _DAYS[match[2] or "d"]


def _token_row(each: TokenRecord) -> list[str]:
    until = "revoked" if each.revoked_at else "-" if each.expires_at is None else moment(each.expires_at)
    used = "-" if each.used_at is None else moment(each.used_at)
    name = each.name if each.person is None else f"{each.name} ({each.person})"
    return [each.id, name, each.project, each.scopes[-1], moment(each.created_at), used, until]
