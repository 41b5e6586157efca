"""Example chains of NoR, OneR and IRCoT side by side, for questions that a rule selects (IRCoT, tables 2 and 5)."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from cotrail.evaluation.experiments.ircot.cells import CellResult, ExampleChain
from cotrail.evaluation.experiments.ircot.line_tables import MODEL, PLACE
from cotrail.evaluation.experiments.ircot.measures import CellResults, runs_by_line
from cotrail.evaluation.experiments.ircot.naming import SYSTEMS
from cotrail.evaluation.experiments.report_tables import Column, ReportTable, TableRow, Value, listing

EXAMPLES = 3
"""Number of questions shown per dataset and model."""

SIDE_BY_SIDE: tuple[str, ...] = ("no-retrieval", "one-step", "ircot")

QUESTION = Column("question", "Question", "passage")
CHAINS = tuple(Column(system, SYSTEMS[system], "passage") for system in SIDE_BY_SIDE)


class ContrastingRuns(Struct, frozen=True, kw_only=True):
    """Runs that differ only in their system, in the order of `SIDE_BY_SIDE`, and the questions to show of them.

    questions: ids of those that IRCoT alone answers correctly, in the dataset's order.
    """

    runs: tuple[CellResult, ...]
    questions: tuple[str, ...]


def contrasts(results: CellResults) -> Iterator[ContrastingRuns]:
    """Yield the runs whose chains can be shown side by side: chain-of-thought reader, first demonstration set."""
    lines = runs_by_line(results)
    for line in lines:
        if (line.goal, line.system, line.reader) == ("qa", "ircot", "cot") and line.demonstrations == line.dataset:
            beside = [lines.get(replace(line, system=system), ()) for system in SIDE_BY_SIDE]
            runs = tuple(run for of_line in beside for run in of_line if run.cell.demonstration_set == 1)
            if len(runs) == len(SIDE_BY_SIDE):
                yield ContrastingRuns(runs=runs, questions=_told_apart(*runs))


def examples(results: CellResults) -> ReportTable | None:
    """Table of the selected questions with each system's chain (tables 2 and 5)."""
    rows = [row for contrast in contrasts(results) for row in _rows(contrast)]
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


def _rows(contrast: ContrastingRuns) -> Iterator[TableRow]:
    line = contrast.runs[-1].cell.line
    for question in contrast.questions:
        chains = [run.chains.get(question) for run in contrast.runs]
        shown = [chain for chain in chains if chain is not None]
        if len(shown) == len(SIDE_BY_SIDE):
            asked = shown[-1].question
            if answers := " / ".join(shown[-1].answers):
                asked = f"{asked} ({answers})"
            written: dict[str, Value] = {
                system: _written(chain) for system, chain in zip(SIDE_BY_SIDE, shown, strict=True)
            }
            yield TableRow(values={"place": line.dataset, "model": line.model, "question": asked, **written})


def _written(chain: ExampleChain) -> str:
    marked = (
        f"[untrue: {sentence}]" if position in chain.untrue else sentence
        for position, sentence in enumerate(chain.sentences)
    )
    return " ".join(marked)
