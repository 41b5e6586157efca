"""Example chains of NoR, OneR and IRCoT side by side, for questions that a rule selects (IRCoT, tables 2 and 5)."""

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from cotrail.evaluation.experiments.ircot.cells import CellResult, ExampleChain
from cotrail.evaluation.experiments.ircot.lines import (
    MODEL,
    PLACE,
    CellResults,
    runs_by_line,
)
from cotrail.evaluation.experiments.ircot.naming import SYSTEMS
from cotrail.evaluation.experiments.report_tables import Column, ReportTable, TableRow, Value, listing

EXAMPLES = 3
"""Number of questions shown per dataset and model."""

SIDE_BY_SIDE: tuple[str, ...] = ("no-retrieval", "one-step", "ircot")

QUESTION = Column("question", "Question", "passage")
CHAINS = tuple(Column(system, SYSTEMS[system], "passage") for system in SIDE_BY_SIDE)


def contrasts(results: CellResults) -> Iterator[tuple[CellResults, tuple[str, ...]]]:
    """Yield runs that differ only in their system, in the order of `SIDE_BY_SIDE`, and the questions to show of them.

    The runs have a chain-of-thought reader and the first demonstration set; the questions are those that IRCoT alone
    answers correctly, in the dataset's order.
    """
    lines = runs_by_line(results)
    for line in lines:
        if (line.goal, line.system, line.reader) == ("qa", "ircot", "cot") and line.demonstrations == line.dataset:
            beside = [lines.get(replace(line, system=system), ()) for system in SIDE_BY_SIDE]
            runs = tuple(run for of_line in beside for run in of_line if run.cell.demonstration_set == 1)
            if len(runs) == len(SIDE_BY_SIDE):
                yield runs, _told_apart(*runs)


def examples(results: CellResults) -> ReportTable | None:
    """Table of the selected questions with each system's chain (tables 2 and 5)."""
    rows = [row for runs, questions in contrasts(results) for row in _rows(runs, questions)]
    notes = [
        f"Of each dataset and model the first {EXAMPLES} questions that IRCoT answers exactly right and OneR and NoR "
        "don't, in the dataset's order, with the first demonstration set."
    ]
    if any("[untrue:" in str(row.values[column.name]) for row in rows for column in CHAINS):
        notes.append("[untrue: ...] is a sentence that people found untrue (`cotrail annotate`).")
    return listing(
        "examples", "Chains of thought (tables 2 and 5)", (PLACE, MODEL, QUESTION, *CHAINS), rows, notes=notes
    )


def _told_apart(without: CellResult, once: CellResult, interleaved: CellResult) -> tuple[str, ...]:
    def right(run: CellResult, question: str) -> bool:
        return question in run.scores and run.scores[question]["answer_em"] == 1

    return tuple(
        question
        for question in interleaved.scores
        if right(interleaved, question) and not right(once, question) and not right(without, question)
    )


def _rows(runs: CellResults, questions: Sequence[str]) -> Iterator[TableRow]:
    line = runs[-1].cell.line
    chained = (question for question in questions if all(question in run.chains for run in runs))
    for question in islice(chained, EXAMPLES):
        chains = [run.chains[question] for run in runs]
        question_text = chains[-1].question
        if answers := " / ".join(chains[-1].answers):
            question_text = f"{question_text} ({answers})"
        values: dict[str, Value] = dict(zip(SIDE_BY_SIDE, map(_written, chains), strict=True))
        yield TableRow(values={"place": line.dataset, "model": line.model, "question": question_text, **values})


def _written(chain: ExampleChain) -> str:
    marked = (
        f"[untrue: {sentence}]" if position in chain.untrue else sentence
        for position, sentence in enumerate(chain.sentences)
    )
    return " ".join(marked)
