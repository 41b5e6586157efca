import logging
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from pydantic import SecretStr
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import refused, unanswered
from cotrail.tasks.runtime import Runtime
from tests.cases import each_case

AWAY = [
    psycopg.OperationalError("connection refused"),
    psycopg.InterfaceError("the connection is closed"),
    errors.AdminShutdown(),
    errors.CannotConnectNow(),
    errors.CrashShutdown(),
    errors.DiskFull(),
    errors.OutOfMemory(),
    errors.TooManyConnections(),
    errors.IoError(),
    errors.DeadlockDetected(),
    errors.ReadOnlySqlTransaction(),
    errors.IdleInTransactionSessionTimeout(),
    errors.QueryCanceled(),
]
WRONG = [errors.UndefinedTable(), errors.InsufficientPrivilege(), errors.SyntaxError()]
REFUSED = [
    errors.ProgramLimitExceeded(),
    errors.StatementTooComplex(),
    errors.NumericValueOutOfRange(),
    errors.UntranslatableCharacter(),
    errors.NotNullViolation(),
    errors.UniqueViolation(),
    psycopg.DataError("no NUL"),
]


def wrapped(error: psycopg.Error) -> Exception:
    """As SQLAlchemy raises it."""
    return DBAPIError.instance("SELECT 1", {}, error, psycopg.Error)


@each_case("error", AWAY, ids=lambda error: type(error).__name__)
def test_a_database_that_is_away_full_or_not_yet_there_is_waited_for(error: psycopg.Error) -> None:
    assert unanswered(error)
    assert unanswered(wrapped(error))


@each_case("error", WRONG, ids=lambda error: type(error).__name__)
def test_a_statement_that_is_wrong_is_not_tried_again(error: psycopg.Error) -> None:
    assert not unanswered(error)
    assert not unanswered(wrapped(error))


@each_case("error", REFUSED, ids=lambda error: type(error).__name__)
def test_a_value_that_the_database_takes_at_no_time_is_no_outage(error: psycopg.Error) -> None:
    assert not unanswered(error)
    assert not unanswered(wrapped(error))
    assert refused(error)
    assert refused(wrapped(error))


@each_case("error", [*AWAY, *WRONG], ids=lambda error: type(error).__name__)
def test_what_is_the_databases_own_doing_is_not_put_down_to_a_value(error: psycopg.Error) -> None:
    assert not refused(wrapped(error))


def test_what_can_not_even_be_written_down_for_the_database_is_refused() -> None:
    surrogate = UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
    assert refused(StatementError("binding", "INSERT", {}, surrogate))
    assert refused(OverflowError("too large"))
    assert not refused(KeyError("a mistake of ours"))


def test_a_connection_that_was_lost_is_an_answer_that_did_not_come() -> None:
    lost = DBAPIError.instance("SELECT 1", {}, psycopg.DatabaseError(), psycopg.Error, connection_invalidated=True)
    assert unanswered(lost)
    assert unanswered(PoolTimeoutError())
    assert not unanswered(SQLAlchemyError())
    assert not unanswered(ValueError())


def test_a_worker_does_its_work_again_until_the_database_is_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = Runtime(Settings(home=tmp_path, database_url=SecretStr("postgresql://nowhere/none")))
    met = [wrapped(errors.DiskFull()), wrapped(errors.AdminShutdown()), wrapped(errors.CannotConnectNow())]

    def work() -> str:
        if met:
            raise met.pop()
        return "done"

    def refused() -> None:
        raise wrapped(errors.UniqueViolation())

    with caplog.at_level(logging.WARNING):
        assert here.insist(work) == "done"
    assert [record.getMessage() for record in caplog.records] == [
        "the database doesn't answer, try 1: CannotConnectNow",
        "the database doesn't answer, try 2: AdminShutdown",
    ]
    with pytest.raises(DBAPIError):
        here.insist(refused)
    here.stop()
