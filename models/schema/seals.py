"""Digests that make the record tamper-evident, as SQL expressions.

The database computes each in the statement that writes the columns that it covers (`cotrail.audit.records`).
So it covers them as PostgreSQL stores and prints them, which an auditor can read again, and not as a worker sent them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by

from cotrail.audit.records import ATTEMPT, EXPERIMENT, QUESTION, QUESTION_OPENED, RUN, RUN_OPENED, STEP, TIME, TIMES
from cotrail.models.schema.tables import attempts, experiments, questions, runs, steps

Values = Mapping[str, sa.ColumnElement[Any]]

AMENDING = sa.text("SET LOCAL cotrail.amending = 'on'")

_EMPTY: sa.ColumnElement[str] = sa.literal_column("''")


def amending(connection: sa.Connection) -> None:
    """Allow this transaction to change rows that are final, which triggers refuse otherwise."""
    connection.execute(AMENDING)


def texts(table: sa.FromClause, names: Iterable[str], instead: Values | None = None) -> list[sa.ColumnElement[str]]:
    """Return a row's columns as they enter digests; instead: the values that the statement is just setting."""
    return [_text(name, (instead or {}).get(name, table.c[name])) for name in names]


EARLIER = attempts.c.epoch < steps.c.epoch
"""Condition of the attempts that a step's digest covers: all but the last, which repeats the step's own columns."""


def step_digest(instead: Values, covered: sa.ColumnElement[bool] = EARLIER) -> sa.ColumnElement[str]:
    """Return the digest of a step that ends with these values."""
    rows = sa.cast(sa.func.json_agg(aggregate_order_by(_row(texts(attempts, ATTEMPT)), attempts.c.epoch)), sa.Text)
    earlier = sa.select(rows).where(attempts.c.step_id == steps.c.id, covered).correlate(steps).scalar_subquery()
    return _digest([*texts(steps, STEP, instead), earlier])


def question_digest(head: sa.ColumnElement[str], instead: Values) -> sa.ColumnElement[str]:
    """Return the digest of a question that ends with these values and this head."""
    return _digest([*texts(questions, QUESTION, instead), head])


def question_head() -> sa.ColumnElement[str]:
    """Return a question's head, for statements over questions."""
    digests = sa.func.coalesce(sa.func.string_agg(steps.c.digest, aggregate_order_by(_EMPTY, steps.c.sequence)), "")
    query = sa.select(_sha256(questions.c.opened + digests)).where(steps.c.question_id == questions.c.id)
    return query.correlate(questions).scalar_subquery()


def question_opened(question: sa.FromClause, opened: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Return the digest of questions as submitted; opened: the digest of their run's configuration."""
    return _digest([opened, *texts(question, QUESTION_OPENED)])


def run_opened() -> sa.ColumnElement[str]:
    """Return the digest of a run's configuration, for statements over runs."""
    plan = sa.select(sa.cast(_row(texts(experiments, EXPERIMENT)), sa.Text)).where(
        experiments.c.id == runs.c.experiment_id
    )
    return _digest([plan.correlate(runs).scalar_subquery(), *texts(runs, RUN_OPENED)])


def run_digest(run: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Return the digest of the run with this id, whose questions have all ended, for statements over runs."""
    return _digest([*texts(runs, RUN), _root(run)])


def _root(run: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Return the root of the Merkle tree over a run's questions (`cotrail.audit.question_sequence`).

    A recursive query builds it level by level, each from pairs of hashes of the level below, so that no value grows
    with the run: hashing all digests at once would need them in one text, and PostgreSQL's texts end at 1 GB.
    """
    place = sa.func.row_number().over(order_by=(questions.c.position, questions.c.id)) - 1
    # Leaves begin with 0 and nodes with 1, so that no node can be passed off as a leaf.
    leaf = _hash(sa.literal(b"\0").concat(_utf8(sa.func.coalesce(questions.c.digest, ""))))
    leaves = sa.select(sa.literal(0).label("level"), place.label("place"), leaf.label("hash"))
    tree = leaves.where(questions.c.run_id == run).cte("tree", recursive=True)
    right = sa.func.lead(tree.c.hash, type_=sa.LargeBinary).over(order_by=tree.c.place).label("right")
    pairs = sa.select(tree, right).subquery("pairs")
    node = _hash(sa.literal(b"\1").concat(pairs.c.hash).concat(pairs.c.right))
    joined = sa.case((pairs.c.right.is_(None), pairs.c.hash), else_=node)
    above = sa.select(pairs.c.level + 1, pairs.c.place.bitwise_rshift(1), joined)
    several = sa.or_(pairs.c.place > 0, pairs.c.right.is_not(None))
    tree = tree.union_all(above.where(pairs.c.place % 2 == 0, several))
    root = sa.select(tree.c.hash).order_by(tree.c.level.desc()).limit(1).scalar_subquery()
    return sa.func.encode(sa.func.coalesce(root, _hash(sa.literal(b""))), "hex")


def _text(name: str, value: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
    return sa.func.to_char(sa.func.timezone("UTC", value), TIME) if name in TIMES else sa.cast(value, sa.Text)


def _row(parts: Iterable[sa.ColumnElement[Any]]) -> sa.ColumnElement[Any]:
    return sa.func.json_build_array(*parts)


def _digest(parts: Iterable[sa.ColumnElement[Any]]) -> sa.ColumnElement[str]:
    return _sha256(sa.cast(_row(parts), sa.Text))


def _sha256(content: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    return sa.func.encode(_hash(_utf8(content)), "hex")


def _hash(content: sa.ColumnElement[Any]) -> sa.ColumnElement[bytes]:
    return sa.func.sha256(content, type_=sa.LargeBinary)


def _utf8(content: sa.ColumnElement[str]) -> sa.ColumnElement[bytes]:
    return sa.func.convert_to(content, "UTF8", type_=sa.LargeBinary)
