"""Results of Search-in-the-Chain and its ablations, read from the store."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from cotrail.core.actions.generate import REASON
from cotrail.data.datasets.musique import hops
from cotrail.data.datasets.registry import scoring_of
from cotrail.data.datasets.scoring import Scoring
from cotrail.evaluation.experiments.searchain.experiment import SearChainExperiment
from cotrail.evaluation.experiments.searchain.protocol import Trial, trials
from cotrail.evaluation.experiments.searchain.runs import SearChainRun, Searched
from cotrail.evaluation.experiments.searchain.words import WordCounts, words_of
from cotrail.evaluation.metrics.cover_em import cover_em
from cotrail.evaluation.metrics.long_answers import long_answer_score
from cotrail.models.queries.experiments import read_experiment
from cotrail.models.queries.model_calls import read_calls
from cotrail.models.queries.runs import read_run
from cotrail.models.queries.traces import TracedQuestion, read_questions
from cotrail.services.reports.costs import run_cost
from cotrail.systems.registry import find_system
from cotrail.systems.searchain.tree import Tree
from cotrail.systems.spec import SystemSpec


def read_searches(connection: Connection, experiment: SearChainExperiment) -> list[SearChainRun]:
    """The runs of an experiment as they stand, in the order of its file, each under its name there."""
    found = read_experiment(connection, experiment.name).runs
    return [_read_run(connection, found[trial.name], trial) for trial in trials(experiment) if trial.name in found]


def _read_run(connection: Connection, run_id: str, trial: Trial) -> SearChainRun:
    record = read_run(connection, run_id)
    spec = find_system(record.system, record.system_version)
    scoring = scoring_of(record.dataset)
    words = {
        key: words_of([call.prompt for call in calls], [call.written for call in calls])
        for key, calls in read_calls(connection, run_id, REASON.name)
    }
    return SearChainRun(
        id=trial.name,
        dataset=trial.dataset,
        model=trial.model,
        variation=trial.variation,
        questions=tuple(_searched(scoring, spec, each, words) for each in read_questions(connection, run_id)),
        corpus=record.corpus,
        scores_overlap=scoring.long_answers,
        cost=run_cost(connection, run_id),
    )


def _searched(
    scoring: Scoring, spec: SystemSpec, question: TracedQuestion, words: Mapping[str, WordCounts]
) -> Searched:
    details = spec.details_in(question.details)
    tree = details if isinstance(details, Tree) else None
    return Searched(
        key=question.key,
        score=_score(scoring, question.answer or "", question.answers) if tree else None,
        stated=_score(scoring, tree.stated, question.answers) if tree else None,
        hops=hops(question.kinds),
        tree=tree,
        gold=_gold(question),
        words=words.get(question.key),
    )


def _score(scoring: Scoring, text: str, answers: Sequence[str]) -> float | None:
    """ROUGE-L where the dataset's answers are long, cover-EM otherwise."""
    return long_answer_score(scoring, text, answers) if scoring.long_answers else cover_em(text, answers)


def _gold(question: TracedQuestion) -> frozenset[str] | None:
    """The digests of the found paragraphs that have the title of a gold one; None where none are published."""
    titles = {each.title for each in question.gold}
    found = (hit.paragraph for step in question.steps for hit in step.hits)
    return frozenset(each.digest for each in found if each.title in titles) if titles else None
