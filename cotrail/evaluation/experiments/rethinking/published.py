"""Results that "Rethinking with Retrieval: Faithful Large Language Model Inference" reports.

He, Zhang and Roth, 2022 (https://arxiv.org/abs/2301.00303), with GPT-3 text-davinci-002. In percent, as printed there:
accuracy on StrategyQA's 229 development questions and on the 1,200 entailed and contradictory hypotheses of INFOTABS'
development set, exact match on 169 questions of TempQuestions.
"""

from collections.abc import Mapping

from cotrail.data.datasets.registry import TASK_OF
from cotrail.evaluation.experiments.report_tables import TableRow, published_percents
from cotrail.evaluation.experiments.sources import source, table_rows
from cotrail.faithfulness.tasks import Task

SOURCE = (
    "What is marked as published is from He, Zhang and Roth, 2022 (arxiv.org/abs/2301.00303): GPT-3 text-davinci-002 "
    "on 229 questions of StrategyQA, 169 of TempQuestions and 1,200 of INFOTABS."
)

MODEL = "GPT-3"

PAPER = source("rethinking").table("methods")

METHODS = {method.system: row.label for row in PAPER.rows for method in row.methods}
"""The systems, in the order of table 1."""

TASKS: Mapping[Task, str] = {"commonsense": "Commonsense", "temporal": "Temporal", "tabular": "Tabular"}


def _percent(where: str, label: str, model: str = MODEL, /, **scores: float) -> TableRow:
    return published_percents(where, label, model, **scores)


def _by_task(where: str, label: str, *scores: float) -> TableRow:
    return _percent(where, label, **dict(zip(TASKS, scores, strict=False)))


def _inference(facts: str, *scores: float) -> tuple[TableRow, ...]:
    models = ("GPT-3 (zero-shot)", "GPT-3 (CoT)", "UnifiedQA")
    return tuple(_percent("table 7", facts, model, accuracy=score) for model, score in zip(models, scores, strict=True))


def _variant(label: str, accuracy: float, faithfulness: float) -> TableRow:
    return _percent("table 5", label, accuracy=accuracy, faithfulness=faithfulness)


METHODS_BY_TASK = table_rows(PAPER, MODEL, TASK_OF)

RETRIEVAL_BY_TASK = (
    _by_task("table 3", "Query-based", 73.36, 36.69),
    _by_task("table 3", "Decomposition-based", 77.73, 39.05),
)
"""The second column is headed "Tabular" in the paper. It is the temporal task's: section 5.2 says so of the table, and
39.05 is what table 1 has there."""

KNOWLEDGE = (
    _percent("table 4", "External", tabular=79.92),
    _percent("table 4", "Background", tabular=84.75),
    _percent("table 4", "Background + External", tabular=84.83),
)
"""External: WordNet and ConceptNet; background: the tables."""

VARIANTS = (
    _variant("CoT prompting", 65.94, 38.73),
    _variant("Basic (w/o voting)", 76.86, 50.02),
    _percent("section 5.3", "Basic (with voting)", accuracy=79.91),
    _variant("Variant I", 78.60, 54.11),
    _variant("Variant II", 78.60, 54.54),
)

INFERENCE = (
    *_inference("Empty facts", 58.08, 65.94, 58.95),
    *_inference("Gold facts", 81.66, 91.70, 90.83),
    *_inference("Generated facts", 69.87, 76.42, 78.60),
)
