"""IRCoT: its experiments, and their results next to the published ones."""

from collections.abc import Mapping, Sequence

from cotrail.common.humanize import count
from cotrail.evaluation.comparison.differences import Reach
from cotrail.evaluation.experiments.costs import RecordedQuestion, RecordedRun
from cotrail.evaluation.experiments.ircot.cells import PRINTED, Cell, CellResult, ExampleChain
from cotrail.evaluation.experiments.ircot.figures import build_charts
from cotrail.evaluation.experiments.ircot.inputs import IRCoTInputs
from cotrail.evaluation.experiments.ircot.lines import is_answered
from cotrail.evaluation.experiments.ircot.protocol import IRCoTExperiment, IRCoTProtocol
from cotrail.evaluation.experiments.ircot.tables import build_tables
from cotrail.evaluation.experiments.paper import Paper, RunKeys
from cotrail.evaluation.experiments.report_tables import ExperimentReport, completeness
from cotrail.evaluation.metrics.factual_errors import factual_errors, untrue
from cotrail.systems.registry import SYSTEMS


def request(experiment: IRCoTExperiment, cell: Cell) -> RunKeys:
    """The request of a run."""
    line, files = cell.line, experiment.datasets[cell.line.dataset]
    return experiment.request(
        line.system,
        dataset=experiment.published_as(line.dataset),
        questions=files.questions or "",
        official=files.official,
        reader=line.reader,
        corpus=files.corpus,
        retrieval_count=cell.retrieval_count,
        model=line.model,
        temperature=experiment.temperature,
    )


def read_cell(cell: Cell, run: RecordedRun) -> CellResult:
    """The results of a recorded run."""
    all_of_it = tuple(run.questions)
    questions = [each for each in all_of_it if each.asked]
    marked = {chain.question_id: untrue(chain) for chain in run.annotations}
    return CellResult(
        cell=cell,
        run=run.id,
        scores={question.key: question.scores for question in questions},
        kinds={question.key: question.kinds for question in questions},
        finished=run.finished,
        reach=Reach(ended={each.key: each.ended for each in all_of_it}, until=run.until),
        unasked=run.unasked,
        cost=run.cost,
        factual_errors=factual_errors(run.annotations),
        chains={each.key: _chain(each, marked) for each in questions if each.chain and _may_be_shown(cell)},
    )


def _may_be_shown(cell: Cell) -> bool:
    return cell.stage == "test" and cell.line.reader == "cot" and cell.demonstration_set == 1


def _chain(question: RecordedQuestion, marked: Mapping[str, frozenset[int]]) -> ExampleChain:
    return ExampleChain(
        question=question.text,
        answers=question.answers,
        sentences=question.chain,
        untrue=marked.get(question.key, frozenset()),
    )


def report(results: Sequence[CellResult]) -> ExperimentReport:
    """IRCoT's tables and figures."""
    searches = sum(result.cell.stage == "search" for result in results)
    summary = (
        f"{count(searches, 'run')} on the development questions and {len(results) - searches:,} on the test questions; "
        f"{completeness([is_answered(result) for result in results])}. {PRINTED.said}"
    )
    return ExperimentReport(summary=summary, tables=build_tables(results), plots=build_charts(results))


PAPER = Paper(
    file=IRCoTExperiment,
    stages=lambda experiment: IRCoTProtocol(experiment, SYSTEMS).stages(),
    request=request,
    read=read_cell,
    report=report,
    inputs=IRCoTInputs,
    pinned=(),
)
