"""Results of runs of Rethinking with Retrieval and its baselines, as its tables need them (section 4.5)."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.core.binding import name_in
from cotrail.core.ports.role import INFERRER
from cotrail.data.datasets.registry import TASK_OF, scoring_of
from cotrail.errors import InputError
from cotrail.evaluation.experiments.costs import ReadQuestion, ReadRun, RecordedQuestion, RecordedRun
from cotrail.evaluation.metrics.answer_scores import Accuracy, accuracy, answer_scores, is_unclear
from cotrail.evaluation.metrics.confidence_intervals import McNemarResult, mcnemar
from cotrail.evaluation.metrics.factual_errors import chain_faithfulness, explanation_faithfulness
from cotrail.faithfulness.rules import inferred, unified
from cotrail.faithfulness.tasks import ChainRules, Task
from cotrail.faithfulness.weighing import Inference, Vote, WeighedChain, Weighing
from cotrail.systems.parts.majority import SampledSettings, TaskSettings
from cotrail.systems.rethinking.settings import RethinkingSettings


class Method(Struct, frozen=True, kw_only=True):
    """A system, and those of its settings that the paper's tables distinguish.

    evidence: the form of the dataset's evidence, if `knowledge` includes it. function: the paper's number of the
        faithfulness function, 0 for none.
    inference: a variant's way to infer its answer, or its reader; empty if it isn't a variant. layout: of its prompts.
    """

    system: str
    variant: str = "basic"
    voting: bool = True
    query: str = "sentence"
    knowledge: tuple[str, ...] = ()
    evidence: str = ""
    function: int = 0
    chains: int | None = None
    temperature: float | None = None
    inference: str = ""
    layout: str = ""
    rules: ChainRules = "paper"

    @property
    def is_basic(self) -> bool:
        """Return whether it weighs outputs and lets them vote (section 3)."""
        return self.system == "rethinking" and self.variant == "basic" and self.voting

    @property
    def has_evidence(self) -> bool:
        """Return whether it uses anything that the dataset annotates as evidence."""
        return "evidence" in self.knowledge

    @property
    def is_on_evidence(self) -> bool:
        """Return whether it is as in section 5.3: annotated paragraphs only, function (3), one query per sentence."""
        on_paragraphs = self.knowledge == ("evidence",) and self.evidence == "paragraphs"
        return on_paragraphs and self.function == 3 and self.query == "sentence"

    @property
    def is_greedy(self) -> bool:
        """Return whether it uses the most likely chain alone, as chain-of-thought prompting does."""
        return self.chains == 1 and self.temperature == 0


def method_of(system: str, settings: Any) -> Method:
    """The method of a run, given its system and settings; for systems of other papers only the name."""
    match settings:
        case RethinkingSettings():
            way = settings.reading.reader if settings.inference == "reader" else settings.inference
            return Method(
                system=system,
                variant=settings.variant,
                voting=settings.voting,
                query=settings.query,
                knowledge=settings.sources,
                evidence=settings.evidence if "evidence" in settings.sources else "",
                function=settings.faithfulness_function,
                chains=settings.chain_count,
                temperature=settings.temperature,
                inference=way if settings.infers else "",
                layout=settings.prompt_layout,
                rules=settings.chain_rules,
            )
        case SampledSettings():
            chains, rules = settings.chain_count, settings.chain_rules
            return Method(system=system, chains=chains, temperature=settings.temperature, rules=rules)
        case TaskSettings():
            return Method(system=system, layout=settings.prompt_layout)
    return Method(system=system)


class Answered(ReadQuestion, frozen=True, kw_only=True):
    """A question of a run: its published answers, and the run's, None if there is none (yet)."""

    answers: tuple[str, ...]
    answer: str | None
    weighing: Weighing | None = None

    @property
    def has_answer(self) -> bool:
        return self.answer is not None


class RethinkingRun(ReadRun[Answered], frozen=True, kw_only=True):
    """A run of one of the paper's methods, or of another system on the same tasks.

    inferrer: the second model that infers its answers; empty for none.
    """

    method: Method
    task: Task
    inferrer: str = ""


def read_run(run: RecordedRun) -> RethinkingRun:
    """A recorded run under its id; InputError where it is of none of the tasks, or its questions have no answers."""
    questions = tuple(_answered(each) for each in run.questions if each.asked and each.answers)
    if not questions:
        raise InputError(f"run {run.id}: its questions come without answers, so nothing tells what is right")
    return RethinkingRun(
        id=run.id,
        method=method_of(run.system, run.settings),
        task=_task_of(run),
        dataset=run.dataset,
        model=run.model,
        questions=questions,
        cost=run.cost,
        unasked=run.unasked,
        inferrer=name_in(run.pins.get(INFERRER.name, "")),
    )


def _answered(question: RecordedQuestion) -> Answered:
    weighing = question.details if isinstance(question.details, Weighing) else None
    return Answered(key=question.key, answers=question.answers, answer=question.answer, weighing=weighing)


def _task_of(run: RecordedRun) -> Task:
    """The dataset's task; for a user's own questions the one in the system's settings."""
    if run.dataset in TASK_OF:
        return TASK_OF[run.dataset]
    try:
        task: Task = msgspec.convert(getattr(run.settings, "task", None), Task)
    except msgspec.ValidationError as error:
        raise InputError(
            f"run {run.id} is on {run.dataset}, which is none of {', '.join(TASK_OF)}, and its settings name no task; "
            "name other runs"
        ) from error
    return task


class Growth(Struct, frozen=True, kw_only=True):
    """Accuracy by number of chains, the first 1, 2, ... of each question: of the vote, and of faithful inference.

    faithful: empty if no evidence was retrieved.
    """

    questions: int
    voted: tuple[float, ...]
    faithful: tuple[float, ...]


def accuracy_of(run: RethinkingRun) -> Accuracy:
    """The run's accuracy, or exact match; a question without an answer is wrong, not unclear."""
    return accuracy(
        (is_right(run, each, each.answer), each.answer is not None and is_unclear(each.answer, each.answers[0]))
        for each in run.questions
    )


def faithfulness_of(run: RethinkingRun) -> float | None:
    """Mean faithfulness of the run's explanations, over the questions that have one; None if none has."""
    values = [explanation_faithfulness(each.weighing) for each in run.questions if each.weighing]
    numbers = [value for value in values if value is not None]
    return fmean(numbers) if numbers else None


def chain_alone(run: RethinkingRun) -> tuple[float, float] | None:
    """Accuracy and faithfulness of a single chain, averaged over chains, then over questions.

    They estimate chain-of-thought prompting with one chain sampled like these; None if no chain was scored.
    """
    weighed = [(each, each.weighing) for each in run.questions if each.weighing and each.weighing.chains]
    faithful = [fmean(values) for _, weighing in weighed if (values := chain_faithfulness(weighing))]
    if not faithful:
        return None
    right = [fmean(is_right(run, each, chain.prediction) for chain in weighing.chains) for each, weighing in weighed]
    return fmean(right), fmean(faithful)


def growth(run: RethinkingRun) -> Growth | None:
    """Effect of the number of chains, over the questions that have all of them; None for one chain or a variant.

    Chains are taken in the order of sampling; recorded scores are reused, so no model is called.
    """
    weighed = [(each, each.weighing.chains) for each in run.questions if each.weighing]
    most = max((len(chains) for _, chains in weighed), default=0)
    if most < 2 or run.method.variant != "basic":
        return None
    whole = [(each, chains) for each, chains in weighed if len(chains) == most]

    def share(count: int, inferred: Callable[[Sequence[WeighedChain]], str]) -> float:
        return fmean(is_right(run, each, inferred(chains[:count])) for each, chains in whole)

    has_scores = any(each.weighing.function for each in run.questions if each.weighing)
    counts = range(1, most + 1)
    return Growth(
        questions=len(whole),
        voted=tuple(share(count, lambda chains: voted(chains, run)) for count in counts),
        faithful=tuple(share(count, lambda chains: faithful(chains, run)) for count in counts) if has_scores else (),
    )


def voted(chains: Sequence[WeighedChain], run: RethinkingRun) -> str:
    """The answer of the majority of the chains (self-consistency)."""
    return _inferred(chains, run, [1.0] * len(chains), voting=True).prediction


def faithful(chains: Sequence[WeighedChain], run: RethinkingRun) -> str:
    """The answer by the chains' faithfulness, with or without a vote as in the run."""
    return _inferred(chains, run, [chain.faithfulness for chain in chains], voting=run.method.voting).prediction


def contrast(ours: RethinkingRun, theirs: RethinkingRun) -> McNemarResult | None:
    """Compare two runs on the questions that both have; None without any, or if the tasks differ."""
    others = {each.key: each for each in theirs.questions}
    pairs = [(each, others[each.key]) for each in ours.questions if each.key in others]
    if ours.task != theirs.task or not pairs:
        return None
    return mcnemar(
        [is_right(ours, each, each.answer) for each, _ in pairs],
        [is_right(theirs, each, each.answer) for _, each in pairs],
    )


def is_right(run: RethinkingRun, question: Answered, answer: str | None) -> bool:
    """Return whether the answer is a published one, by the metric of the run's dataset."""
    scores = None if answer is None else answer_scores(scoring_of(run.dataset), answer, question.answers)
    return scores is not None and scores.em == 1


def _inferred(
    chains: Sequence[WeighedChain], run: RethinkingRun, weights: Sequence[float], *, voting: bool
) -> Inference:
    rules = run.method.rules
    predictions = unified((chain.prediction for chain in chains), run.task, rules)
    votes = [Vote(*vote) for vote in zip(predictions, weights, strict=True)]
    return inferred(votes, run.task, rules, voting=voting)
