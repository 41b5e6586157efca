"""Every column of the database is sealed, derived or known not to be covered, and docs/audit.md says which."""

from collections import Counter

from cotrail.models.schema.deployment import deployment
from cotrail.models.schema.service_tables import batches, question_summaries, tokens
from cotrail.models.schema.tables import runs
from tests.unit.audit_coverage import coverage, described
from tests.unit.commands import ROOT


def test_every_column_of_every_table_is_in_exactly_one_place() -> None:
    (metadata,) = {table.metadata for table in (runs, batches, tokens, question_summaries, deployment)}
    there = Counter((name, column.name) for name, table in metadata.tables.items() for column in table.columns)
    named = Counter((table, column) for table, _, columns in coverage() for column in columns)
    assert named == there, (
        "name a new column in tests/unit/audit_coverage.py, in one place: sealed, derived or not covered"
    )


def test_the_page_on_the_audit_trail_has_them_all() -> None:
    page = (ROOT / "docs" / "audit.md").read_text("utf-8")
    assert described() in page, "put what `tests.unit.audit_coverage.described()` returns into docs/audit.md"
