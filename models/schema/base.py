"""What the tables share: their base class, their columns' types, and constraints that several have.

Statements over many rows, which travel as one JSON parameter: their text is the same for any number of rows.
"""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ColumnElement,
    Double,
    MetaData,
    Numeric,
    String,
    Table,
    TableValuedAlias,
    bindparam,
    column,
    func,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP, Insert, insert
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import UserDefinedType

from cotrail.models.schema.states import AttemptOutcome, DesiredState, JobState, QuestionStatus, StepState

Rows = list[dict[str, Any]]


def recordset(*columns: ColumnElement[Any]) -> TableValuedAlias:
    """Return the rows bound as the parameter `rows`, as a table of these columns."""
    typed = (column(str(c.name), c.type) for c in columns)
    rows = func.jsonb_to_recordset(bindparam("rows", type_=JSONB))
    return rows.table_valued(*typed).render_derived(name="rows", with_types=True)


def insert_rows(table: Table, *names: str, **constants: ColumnElement[Any]) -> Insert:
    """Return an INSERT of the rows bound as `rows`, in these columns; `constants` are the same for every row."""
    return insert_computed(table, recordset(*(table.c[name] for name in names)), **constants)


def insert_computed(table: Table, rows: TableValuedAlias, **further: ColumnElement[Any]) -> Insert:
    """Return an INSERT of rows with further columns, which may be computed from them."""
    names = [column.name for column in rows.c]
    return insert(table).from_select([*names, *further], select(rows, *further.values()))


Json = dict[str, Any]
now = text("now()")
no_entries, no_keys = text("'[]'"), text("'{}'")


class Base(DeclarativeBase):
    """Base class of the tables; names of constraints are fixed so that migrations can refer to them."""

    metadata = MetaData(
        naming_convention={
            "ix": "%(table_name)s_%(column_0_N_name)s_idx",
            "uq": "%(table_name)s_%(column_0_N_name)s_key",
            "ck": "%(table_name)s_%(constraint_name)s_check",
            "fk": "%(table_name)s_%(column_0_name)s_fkey",
            "pk": "%(table_name)s_pkey",
        }
    )
    type_annotation_map: ClassVar = {
        Json: JSONB,
        list[str]: JSONB,
        list[Json]: JSONB,
        datetime: TIMESTAMP(timezone=True),
        float: Double,
        Decimal: Numeric,
        int: BigInteger,
        DesiredState: String,
        QuestionStatus: String,
        StepState: String,
        AttemptOutcome: String,
        JobState: String,
    }


def one_of(column: str, states: type[StrEnum]) -> CheckConstraint:
    """Return the constraint that a column holds one of these states."""
    values = ", ".join(f"'{state}'" for state in states)
    return CheckConstraint(f"{column} IN ({values})", name=column)


def ended_or_without(state: str, *columns: str) -> CheckConstraint:
    """Return the constraint that a row which hasn't ended holds none of the columns of an end.

    No digest seals such a row, so a reader couldn't tell a forged end from a recorded one.
    """
    unheld = " AND ".join(f"{column} IS NULL" for column in columns)
    return CheckConstraint(f"{state} IN ('finished', 'failed', 'cancelled') OR ({unheld})", name="end")


class TransactionNumber(UserDefinedType[int]):
    """PostgreSQL's `xid8`: the number of a transaction, which none has again."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """The type's name in SQL."""
        return "xid8"
