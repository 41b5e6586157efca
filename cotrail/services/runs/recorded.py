"""Runs of experiments, read from the store."""

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import Any

import msgspec
from sqlalchemy import Connection

from cotrail.core.actions.generate import Prompted
from cotrail.core.results import Generated
from cotrail.evaluation.experiments.costs import ModelCall, QuestionCost, RecordedQuestion, RecordedRun
from cotrail.evaluation.experiments.paper import Experiment
from cotrail.evaluation.experiments.registry import paper_of
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.evaluation.metrics.question_scores import scorer
from cotrail.evaluation.metrics.stop_rules import until
from cotrail.models.queries.annotations import chain_of, read_annotations
from cotrail.models.queries.experiments import read_experiment
from cotrail.models.queries.outcomes import ASKED
from cotrail.models.queries.progress import is_complete, read_progress, read_standings
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.queries.traces import read_questions
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.runs.scores import question_costs, run_cost, scores_by_question
from cotrail.systems.registry import find_system, recorded_system
from cotrail.systems.spec import SystemSpec


class StoredRuns:
    """The runs of an experiment in the store; ids: by their names in the experiment."""

    def __init__(self, connection: Connection, experiment: str) -> None:
        self._connection = connection
        self._experiment = experiment
        self.ids = read_experiment(connection, experiment).runs

    def is_complete(self, run: str) -> bool:
        """Return whether every question of the run has ended with an answer or a failure, so that it can be scored."""
        return is_complete(self._standings[run])

    def scores(self, run: str) -> tuple[QuestionScores, ...]:
        """The scores of the run's questions."""
        record = read_run(self._connection, run)
        return tuple(each.scores for each in scores_by_question(self._connection, record).values())

    @cached_property
    def _standings(self) -> Mapping[str, Mapping[str, int]]:
        return read_standings(self._connection, self._experiment)


def read_results(connection: Connection, experiment: Experiment, runs: dict[str, str]) -> list[Any]:
    """What the experiment's tables need of its runs as they stand, in the order of its file; runs: ids by name.

    Runs that were cancelled before they asked anything have no results.
    """
    paper = paper_of(experiment.protocol)
    cells = {cell.name: cell for stage in paper.stages(experiment) for cell in stage.possible}
    recorded = ((cell, recorded_run(connection, runs[name])) for name, cell in cells.items() if name in runs)
    return [paper.read(cell, run) for cell, run in recorded if run.unasked < run.size]


def recorded_run(connection: Connection, run_id: str) -> RecordedRun:
    """A run as it stands."""
    record = read_run(connection, run_id)
    spec = find_system(record.system, record.system_version)
    progress = read_progress(connection, run_id)
    return RecordedRun(
        id=run_id,
        system=record.system,
        settings=msgspec.convert(record.settings, spec.settings),
        dataset=record.dataset,
        model=record.model_name,
        corpus=", ".join(record.corpora) or None,
        questions=_questions(connection, record, spec),
        calls=partial(_calls, connection, run_id),
        annotations=read_annotations(connection, run_id),
        finished=progress.questions[QuestionStatus.FINISHED],
        size=progress.total,
        unasked=progress.questions[QuestionStatus.CANCELLED],
        until=until(record.provenance),
        cost=run_cost(connection, run_id),
        ends=progress.ends,
        pins=record.knowledge,
    )


def _questions(connection: Connection, record: RunRecord, spec: SystemSpec) -> Iterator[RecordedQuestion]:
    scores, costs = scorer(record, recorded_system), question_costs(connection, record.id)
    for question in read_questions(connection, record.id):
        yield RecordedQuestion(
            key=question.key,
            text=question.text,
            answers=question.answers,
            answer=question.answer,
            kinds=question.kinds,
            scores=scores(question),
            details=spec.details_in(question.details),
            chain=chain_of(record, question) if "reading" in record.settings else question.sentences,
            gold=question.gold,
            paragraphs=tuple(hit.paragraph for step in question.steps for hit in step.hits),
            cost=costs.get(question.key, QuestionCost()),
            ended=question.status in ASKED,
            asked=question.status != QuestionStatus.CANCELLED,
        )


def _calls(connection: Connection, run_id: str, kind: str) -> Iterator[tuple[str, tuple[ModelCall, ...]]]:
    """The key of each question with finished steps of a kind with prompts, with these in order."""
    for question in read_questions(connection, run_id):
        calls = tuple(
            ModelCall(prompt=step.action.prompt, written=step.result.raw)
            for step in question.steps
            if step.kind == kind and isinstance(step.action, Prompted) and isinstance(step.result, Generated)
        )
        if calls:
            yield question.key, calls
