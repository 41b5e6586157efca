"""`cotrail token`: tokens of the service."""

import re
from typing import Annotated

import typer

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import console, print_json
from cotrail.common.humanize import moment
from cotrail.errors import InputError
from cotrail.services.access import tokens
from cotrail.services.access.tokens import TokenRecord
from cotrail.services.actor import Scope

token = typer.Typer(no_args_is_help=True, help="Make, list and revoke tokens of the service.")

COLUMNS = (
    Column(title="id"),
    Column(title="name"),
    Column(title="project"),
    Column(title="allows"),
    Column(title="created"),
    Column(title="used"),
    Column(title="until"),
)

_LIFETIME = re.compile(r"(\d+)(h|d)?")
_DAYS = {"h": 1 / 24, "d": 1.0}


@token.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the token is for.", show_default=False)],
    *,
    scope: Annotated[
        list[Scope],
        typer.Option("--scope", metavar="SCOPE", help="What it allows, each with those before it.", show_default=False),
    ],
    project: Annotated[
        str | None, typer.Option("--project", metavar="PROJECT", help="Its project.", show_default="default")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="TIME", help="When it expires, as 90d or 12h.", show_default="never"),
    ] = None,
    json: Json = False,
) -> None:
    """Make a token, and print its secret: the only time that it is shown."""
    made = tokens.create_token(name, scope, project=project, days=None if expires is None else _days(expires))
    if json:
        print_json(made)
        return
    screen = console()
    screen.print(made.secret, soft_wrap=True)
    console(stderr=True).print(
        f"Token {made.id} of the project {made.project} allows: {', '.join(made.scopes)}. Keep the secret now: it "
        "isn't shown again. Programs send it as `Authorization: Bearer SECRET`, cotrail takes it from COTRAIL_TOKEN.",
        soft_wrap=True,
    )


@token.command("list")
def index(*, json: Json = False) -> None:
    """List tokens, the newest first, those that expired or were revoked too."""
    listed = tokens.list_tokens()
    if json:
        print_json(listed)
    elif listed:
        print_rows(console(), COLUMNS, [_row(each) for each in listed])
    else:
        console().print("No tokens yet. `cotrail token create NAME --scope read` makes one.")


@token.command()
def revoke(
    token: Annotated[str, typer.Argument(metavar="ID", help="The token's id.", show_default=False)],
    *,
    json: Json = False,
) -> None:
    """Revoke a token for good. Processes of the service take it for five more seconds."""
    revoked = tokens.revoke_token(token)
    if json:
        print_json(revoked)
    else:
        console().print(f"Token {revoked.id} is revoked.", soft_wrap=True)


def _days(text: str) -> float:
    match = _LIFETIME.fullmatch(text)
    if match is None or not int(match[1]):
        raise InputError(f"{text!r} is no time: write a number of days as 90d, or of hours as 12h")
    return int(match[1]) * _DAYS[match[2] or "d"]


def _row(each: TokenRecord) -> list[str]:
    until = "revoked" if each.revoked_at else "-" if each.expires_at is None else moment(each.expires_at)
    used = "-" if each.used_at is None else moment(each.used_at)
    name = each.name if each.person is None else f"{each.name} ({each.person})"
    return [each.id, name, each.project, each.scopes[-1], moment(each.created_at), used, until]
