"""Exports of runs: their answers as files that other programs read."""

from collections.abc import Iterator

import msgspec

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.named_runs import find_run
from cotrail.services.store import reading
from cotrail.services.views.browsecomp_submission import submission_files
from cotrail.services.views.exporting import Format, lines
from cotrail.services.views.run_verdicts import verdicts_by_question
from cotrail.services.views.tracing import read_questions


@operation("GET", "/runs/{run}/export", Scope.READ, answers="stream", media_type="application/jsonl")
def answers(run: str, form: Format = "jsonl") -> Iterator[bytes]:
    """Give a run's answers, and the chains and paragraphs behind them, as lines of a file in that form.

    form: `jsonl` has everything recorded of each question, one JSON object a line; the others are what those datasets'
    official evaluation scripts read.
    """
    with reading() as connection:
        record = find_run(connection, run)
        verdicts = verdicts_by_question(connection, record)
        yield from lines(record, read_questions(connection, record.id), form, verdicts)


@operation("GET", "/runs/{run}/export/files", Scope.READ, answers="stream", media_type="application/jsonl")
def files(run: str) -> Iterator[bytes]:
    """Give a run's answers as BrowseComp-Plus' script reads them: a line for each file, with its name and its text."""
    with reading() as connection:
        record = find_run(connection, run)
        for name, content in submission_files(record, read_questions(connection, record.id)):
            yield msgspec.json.encode((name, content.decode())) + b"\n"
