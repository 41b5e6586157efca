"""Numbers of transactions in a restored store, which another server gave.

They order what readers have seen (`cotrail.models.queries.events`). Those that this server hasn't given yet would keep
their rows from readers until it has: such rows take the number of the transaction that finds them, as if all of them
had changed in it.
"""

from sqlalchemy import Column, Connection, Select, Table, exists, func, select, update

from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import questions, runs, steps

_CURRENT = func.pg_current_xact_id()


def renumber(connection: Connection) -> None:
    """Give rows from a server whose numbers are ahead of this one's a number of this transaction.

    Where there are none, which is found by one look into an index for each run, nothing is written.
    """
    for table, column in ((steps, steps.c.ended_in), (questions, questions.c.changed_in)):
        for run in connection.execute(_runs_ahead(table, column)).scalars().all():
            amending(connection)
            ahead = table.c.run_id == run, column > _CURRENT
            connection.execute(update(table).where(*ahead).values({column: _CURRENT}))


def _runs_ahead(table: Table, column: Column[int]) -> Select[str]:
    return select(runs.c.id).where(exists().where(table.c.run_id == runs.c.id, column > _CURRENT))
