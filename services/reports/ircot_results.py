"""Results of an experiment by IRCoT's protocol, read from the store."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.evaluation.experiments.ircot.cells import Cell, CellResult, ExampleChain
from cotrail.evaluation.experiments.ircot.examples import EXAMPLES, ContrastingRuns, contrasts
from cotrail.evaluation.experiments.ircot.experiment import IRCoTExperiment
from cotrail.evaluation.experiments.ircot.protocol import IRCoTProtocol
from cotrail.evaluation.metrics.factual_errors import AnnotatedChain, factual_errors, untrue
from cotrail.models.queries.annotations import chain_of, read_annotations, read_marks
from cotrail.models.queries.experiments import read_experiment
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.runs import read_run
from cotrail.models.queries.traces import read_question, read_questions
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.reports.costs import run_cost
from cotrail.services.scoring import scores_of
from cotrail.systems.registry import SYSTEMS


def read_results(connection: Connection, experiment: str) -> list[CellResult]:
    """Every run of the experiment as it stands, in the order of its plan, whichever was submitted first."""
    record = read_experiment(connection, experiment)
    protocol = IRCoTProtocol(msgspec.convert(record.plan["experiment"], IRCoTExperiment), SYSTEMS)
    results = [read_result(connection, run, _cell(connection, run)) for run in record.runs.values()]
    return with_examples(connection, sorted(results, key=lambda result: protocol.position(result.cell)))


def read_result(connection: Connection, run: str, cell: Cell) -> CellResult:
    """The results of one run so far."""
    record, progress = read_run(connection, run), read_progress(connection, run)
    questions = list(read_questions(connection, run))
    return CellResult(
        cell=cell,
        run=run,
        scores={question.key: scores_of(record, question) for question in questions},
        kinds={question.key: question.kinds for question in questions},
        finished=progress.questions[QuestionStatus.FINISHED],
        cost=run_cost(connection, run),
        factual_errors=factual_errors(read_annotations(connection, run)),
    )


def with_examples(connection: Connection, results: Sequence[CellResult]) -> list[CellResult]:
    """The results with the chains of the questions that `cotrail.evaluation.experiments.ircot.examples` chooses."""
    chains: dict[str, dict[str, ExampleChain]] = defaultdict(dict)
    for contrast in contrasts(results):
        for question, by_run in islice(_with_chains(connection, contrast), EXAMPLES):
            for run, chain in by_run.items():
                chains[run][question] = chain
    return [replace(result, chains=chains[result.run]) for result in results]


def _with_chains(connection: Connection, contrast: ContrastingRuns) -> Iterator[tuple[str, dict[str, ExampleChain]]]:
    """The questions for which every run has a chain, with these chains by run."""
    runs = [result.run for result in contrast.runs]
    for question in contrast.questions:
        by_run = {run: chain for run in runs if (chain := read_chain(connection, run, question))}
        if len(by_run) == len(runs):
            yield question, by_run


def read_chain(connection: Connection, run: str, key: str) -> ExampleChain | None:
    """A question's chain with its annotations; None where it isn't finished or has none."""
    question = read_question(connection, run, key)
    sentences = chain_of(read_run(connection, run), question)
    if not sentences:
        return None
    marks = tuple(mark for mark in read_marks(connection, run) if mark.question_id == key)
    judged = AnnotatedChain(question_id=key, sentences=sentences, marks=marks)
    return ExampleChain(question=question.text, answers=question.answers, sentences=sentences, untrue=untrue(judged))


def _cell(connection: Connection, run: str) -> Cell:
    return msgspec.convert(read_run(connection, run).provenance["cell"], Cell)
