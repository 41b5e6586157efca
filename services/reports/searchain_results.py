"""Results of Search-in-the-Chain and its ablations, read from the store."""

from collections.abc import Sequence

from sqlalchemy import Connection

from cotrail.core.actions.generate import Reason
from cotrail.core.results import Generated
from cotrail.data.datasets.musique import hops
from cotrail.evaluation.experiments.searchain.experiment import SearChainExperiment
from cotrail.evaluation.experiments.searchain.protocol import Trial, trials
from cotrail.evaluation.experiments.searchain.runs import SearChainRun, Searched
from cotrail.evaluation.experiments.searchain.words import WordCounts, words_of
from cotrail.evaluation.metrics.cover_em import cover_em
from cotrail.evaluation.metrics.long_answers import DATASETS as LONG_ANSWERS
from cotrail.evaluation.metrics.long_answers import long_answer_score
from cotrail.models.queries.experiments import read_experiment
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
    return SearChainRun(
        id=trial.name,
        dataset=trial.dataset,
        model=trial.model,
        variation=trial.variation,
        questions=tuple(_searched(record.dataset, spec, each) for each in read_questions(connection, run_id)),
        corpus=record.corpus,
        scores_overlap=record.dataset in LONG_ANSWERS,
        cost=run_cost(connection, run_id),
    )


def _searched(dataset: str, spec: SystemSpec, question: TracedQuestion) -> Searched:
    details = spec.details_in(question.details)
    tree = details if isinstance(details, Tree) else None
    return Searched(
        key=question.key,
        score=_score(dataset, question.answer or "", question.answers) if tree else None,
        stated=_score(dataset, tree.stated, question.answers) if tree else None,
        hops=hops(question.kinds),
        tree=tree,
        gold=_gold(question),
        words=_words(question),
    )


def _words(question: TracedQuestion) -> WordCounts | None:
    """The words of the question's calls of the model; None where there are none yet."""
    calls = [
        (step.action.prompt, step.result.raw)
        for step in question.steps
        if isinstance(step.action, Reason) and isinstance(step.result, Generated)
    ]
    return words_of(*zip(*calls, strict=True)) if calls else None


def _score(dataset: str, text: str, answers: Sequence[str]) -> float | None:
    """ROUGE-L where the dataset's answers are long, cover-EM otherwise."""
    return long_answer_score(dataset, text, answers) if dataset in LONG_ANSWERS else cover_em(text, answers)


def _gold(question: TracedQuestion) -> frozenset[str] | None:
    """The digests of the found paragraphs that have the title of a gold one; None where none are published."""
    titles = {each.title for each in question.gold}
    found = (hit.paragraph for step in question.steps for hit in step.hits)
    return frozenset(each.digest for each in found if each.title in titles) if titles else None
