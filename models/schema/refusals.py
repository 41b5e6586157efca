"""What to do about a database that refuses or doesn't answer, in the words of the person who set its address."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import StatementError

from cotrail.errors import CotrailError, InputError, UnavailableError
from cotrail.models.schema.database import reason_of, refused, unanswered

NOT_LET_IN = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "authentication failed for user",
    "is not permitted to log in",
    "permission denied for database",
)
"""Parts of what a server says to a role that it doesn't let in."""


@contextmanager
def explained(*, local: bool) -> Iterator[None]:
    """Turns what SQLAlchemy raises in the block into an error that says what to do.

    local: whether the database is the local stack's own, and not one that COTRAIL_DATABASE_URL names.
    Raises UnavailableError where the database can't be used, InputError where it can't hold a value.
    """
    try:
        yield
    except StatementError as error:
        if explanation := _explanation(error, local=local):
            raise explanation from error
        raise


def unreachable(error: Exception, *, local: bool) -> str:
    """What to do about a database that can't be connected to, with its reason."""
    reason = reason_of(error)
    if "starting up" in reason:
        return f"the database is starting; try again in a few seconds ({reason})"
    if local:
        return f"the local stack's database doesn't answer; start it with `cotrail up` ({reason})"
    named = "the database that COTRAIL_DATABASE_URL names"
    if any(part in reason for part in NOT_LET_IN) or ("role" in reason and "does not exist" in reason):
        return f"{named} doesn't let this user in; correct the user or the password there ({reason})"
    if "does not exist" in reason:
        return f"{named} isn't on that server; make it (`createdb`), or correct the name ({reason})"
    return f"{named} doesn't answer; check the URL and the server ({reason})"


def _explanation(error: StatementError, *, local: bool) -> CotrailError | None:
    if unanswered(error):
        return UnavailableError(unreachable(error, local=local))
    if refused(error):
        return InputError(f"the database can't hold a value of the input: {reason_of(error)}; correct it")
    state = error.orig.sqlstate if isinstance(error.orig, psycopg.Error) else None
    makes = "`cotrail up`" if local else "`cotrail migrate`"
    match state:
        case "42P01":
            return UnavailableError(f"the database has no tables yet; {makes} makes them")
        case "42703":
            return UnavailableError(
                f"the database's tables aren't those of this cotrail ({reason_of(error)}); {makes} updates them"
            )
        case "42501":
            return UnavailableError(
                f"the database's user may not do this ({reason_of(error)}); make it the owner of the database and its "
                "tables, or grant it the right"
            )
    return None
