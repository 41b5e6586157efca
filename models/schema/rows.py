"""Statements over many rows, which travel as one JSON parameter: their text is the same for any number of rows."""

from typing import Any

from sqlalchemy import ColumnElement, Table, TableValuedAlias, bindparam, column, func, select
from sqlalchemy.dialects.postgresql import JSONB, Insert, insert

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
