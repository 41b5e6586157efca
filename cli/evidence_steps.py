"""Extract and rate steps on the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from cotrail.cli.output import grid
from cotrail.common.printable_text import one_line
from cotrail.core.actions.extract import EXTRACT
from cotrail.core.actions.rate import RATE
from cotrail.services.evidence_texts import named, ratings
from cotrail.services.tracing import TracedStep


def evidence_step(step: TracedStep, names: Mapping[str, str]) -> Text | Table | None:
    """Request and result of an extract or a rate step; None for another kind, and where it has no result.

    names: the paragraphs' names by digest.
    """
    if step.request is None or step.result is None:
        return None
    if step.kind == EXTRACT.name:
        return _extracted(step.request, step.result, names)
    return _rated(step.request, step.result, names) if step.kind == RATE.name else None


def _extracted(request: dict[str, Any], result: Any, names: Mapping[str, str]) -> Text:
    (paragraph,) = request["paragraphs"]
    text = Text(f"“{one_line(request['question'])}”\n", style="dim")
    text.append(one_line(result["text"]) or "no answer", style="not dim bold")
    return text.append(f"  confidence {result['confidence']:.2f}, in {named(paragraph, names)}")


def _rated(request: dict[str, Any], result: Any, names: Mapping[str, str]) -> Table:
    table = grid("", "dim")
    table.columns[0].justify = "right"
    table.add_row(request["by"], f"“{one_line(request['text'])}”")
    for row in ratings(request, result, names):
        table.add_row(*row)
    return table
