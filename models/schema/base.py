"""What the tables share: their base class, and their columns' types.

Statements over many rows, which travel as one JSON parameter: their text is the same for any number of rows.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy import column
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP, Insert, insert
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import UserDefinedType

from cotrail.models.schema.states import AttemptOutcome, DesiredState, JobState, QuestionStatus, StepState

Rows = list[dict[str, Any]]


def recordset(*columns: sa.ColumnElement[Any]) -> sa.TableValuedAlias:
    """Return the rows bound as the parameter `rows`, as a table of these columns."""
    typed = (column(str(c.name), c.type) for c in columns)
    rows = sa.func.jsonb_to_recordset(sa.bindparam("rows", type_=JSONB))
    return rows.table_valued(*typed).render_derived(name="rows", with_types=True)


def insert_rows(table: sa.Table, *names: str, **constants: sa.ColumnElement[Any]) -> Insert:
    """Return an INSERT of the rows bound as `rows`, in these columns; `constants` are the same for every row."""
    return insert_computed(table, recordset(*(table.c[name] for name in names)), **constants)


def insert_computed(table: sa.Table, rows: sa.TableValuedAlias, **further: sa.ColumnElement[Any]) -> Insert:
    """Return an INSERT of rows with further columns, which may be computed from them."""
    names = [column.name for column in rows.c]
    return insert(table).from_select([*names, *further], sa.select(rows, *further.values()))


Json = dict[str, Any]
now = sa.text("now()")
no_entries, no_keys = sa.text("'[]'"), sa.text("'{}'")


class Base(DeclarativeBase):
    """Base class of the tables; names of constraints are fixed so that migrations can refer to them."""

    metadata = sa.MetaData(
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
        float: sa.Double,
        Decimal: sa.Numeric,
        int: sa.BigInteger,
        DesiredState: sa.String,
        QuestionStatus: sa.String,
        StepState: sa.String,
        AttemptOutcome: sa.String,
        JobState: sa.String,
    }


class TransactionNumber(UserDefinedType[int]):
    """PostgreSQL's `xid8`: the number of a transaction, which none has again."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """The type's name in SQL."""
        return "xid8"
