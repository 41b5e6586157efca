"""Questions as a run's page shows them, and the states by which a reader filters them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from cotrail.common.humanize import percent
from cotrail.common.printable_text import cut, one_line
from cotrail.common.structs import shortened
from cotrail.core.questions import Paragraph
from cotrail.core.views import name_of
from cotrail.data.datasets.registry import DATASETS, scoring_of
from cotrail.evaluation.causes.cause import Cause, CauseLabel, Explanation
from cotrail.evaluation.metrics.answer_scores import answer_scores
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.faithfulness.weighing import ChosenFact, WeighedChain, WeighedPrediction, WeighedSentence, Weighing
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.traces import TracedQuestion
from cotrail.models.schema.states import QuestionStatus
from cotrail.services.results.causes import Verdict, details_of, explained, verdict_of
from cotrail.services.results.reasoning import (
    FoundGold,
    ShownTree,
    found_in,
    gold_paragraphs,
    names_in,
    shown_tree,
    turns,
)
from cotrail.services.results.reports.pages import SNIPPET, ReportedStep, anchor_of, reported_step
from cotrail.services.results.steps import ShownStep, shown_steps
from cotrail.systems.searchain.tree import Tree

# How an answer was weighed among those of several chains, as a run's page shows it.

SUM_RULE = "Weight: the sum of its chains' f(R), without voting the highest."

FUNCTIONS = {
    0: "Weight: the number of chains that state the answer (self-consistency).",
    1: f"{SUM_RULE} f: M where it is high, E elsewhere, less C (function 1).",
    2: f"{SUM_RULE} f: M + E (function 2).",
    3: f"{SUM_RULE} f: E where it is high, less C where that is high (function 3).",
}
"""What the weights of appendix A.2 are made of, in short."""


class ReportedEvidence(Struct, frozen=True, kw_only=True):
    """The paragraph that a sentence was judged by."""

    name: str
    snippet: str
    anchor: str
    gold: bool


class ReportedFact(Struct, frozen=True, kw_only=True):
    """A sentence with its evidence and its scores: M, E, C and the term f for a chain's, E and C for a variant's.

    origin: of a variant's supporting fact, empty for a chain's; replaces: the fact that it stands for, if another.
    """

    text: str
    evidence: ReportedEvidence | None
    scores: Mapping[str, str]
    origin: str = ""
    replaces: str = ""


class ReportedChain(Struct, frozen=True, kw_only=True):
    """A sampled chain; number: from 1; faithfulness: empty where chains only vote."""

    number: int
    prediction: str
    text: str
    faithfulness: str
    chosen: bool
    facts: tuple[ReportedFact, ...]


class ReportedPrediction(Struct, frozen=True, kw_only=True):
    """An answer with its weight and the numbers of its chains; right: None where no answer is published."""

    text: str
    weight: str
    chains: tuple[int, ...]
    right: bool | None
    chosen: bool


class ReportedWeighing(Struct, frozen=True, kw_only=True):
    """A weighing; rule: what a chain's weight is; facts: those of a variant's final inference."""

    rule: str
    predictions: tuple[ReportedPrediction, ...]
    chains: tuple[ReportedChain, ...]
    facts: tuple[ReportedFact, ...]


class _EvidenceParagraphs:
    """The paragraphs that a question found, by the digests that name them as evidence."""

    def __init__(self, steps: Iterable[ShownStep]) -> None:
        self._found = {hit.digest: hit for step in steps for hit in step.view.found}

    def shown(self, digest: str | None) -> ReportedEvidence | None:
        if digest is None:
            return None
        hit = self._found.get(digest)
        return ReportedEvidence(
            name=one_line(name_of(hit.paragraph) if hit else shortened(digest)),
            snippet=cut(hit.paragraph.text, SNIPPET) if hit else "",
            anchor=anchor_of(digest) if hit else "",
            gold=hit is not None and hit.gold,
        )


def reported_weighing(
    weighing: Weighing, steps: Iterable[ShownStep], answers: Sequence[str], dataset: str
) -> ReportedWeighing:
    """The weighing of a question's answer; steps: the question's; dataset: by whose metric predictions are right."""
    evidence = _EvidenceParagraphs(steps)
    return ReportedWeighing(
        rule=FUNCTIONS.get(weighing.function, ""),
        predictions=tuple(_prediction(each, weighing, answers, dataset) for each in weighing.predictions),
        chains=tuple(_chain(each, weighing, evidence) for each in weighing.chains),
        facts=tuple(_fact(each, evidence) for each in weighing.facts),
    )


def _prediction(
    each: WeighedPrediction, weighing: Weighing, answers: Sequence[str], dataset: str
) -> ReportedPrediction:
    # Where the dataset is unknown here, nothing says which predictions are right.
    scores = answer_scores(scoring_of(dataset), each.prediction, answers) if dataset in DATASETS else None
    return ReportedPrediction(
        text=each.prediction,
        weight=f"{each.weight:.2f}",
        chains=tuple(number + 1 for number in each.chains),
        right=None if scores is None or scores.em is None else scores.em == 1,
        chosen=weighing.chosen in each.chains,
    )


def _chain(chain: WeighedChain, weighing: Weighing, evidence: _EvidenceParagraphs) -> ReportedChain:
    return ReportedChain(
        number=chain.number + 1,
        prediction=chain.prediction,
        text=chain.text,
        faithfulness=f"{chain.faithfulness:.2f}" if weighing.function else "",
        chosen=chain.number == weighing.chosen,
        facts=tuple(_sentence(each, evidence) for each in chain.sentences),
    )


def _sentence(each: WeighedSentence, evidence: _EvidenceParagraphs) -> ReportedFact:
    values = {"M": each.similarity, "E": each.entailment, "C": each.contradiction, "f": each.score}
    return ReportedFact(text=each.text, evidence=evidence.shown(each.evidence), scores=_written(values))


def _fact(fact: ChosenFact, evidence: _EvidenceParagraphs) -> ReportedFact:
    return ReportedFact(
        text=fact.text,
        evidence=evidence.shown(fact.evidence),
        scores=_written({"E": fact.entailment, "C": fact.contradiction}),
        origin=fact.origin,
        replaces=fact.replaces if fact.replaces != fact.text else "",
    )


def _written(values: Mapping[str, float]) -> dict[str, str]:
    return {name: f"{value:.2f}" for name, value in values.items()}


MARKS: Mapping[Verdict, str] = {"right": "✓ right", "wrong": "✗ wrong", "unscored": ""}
"""The words next to an answer, so that none depends on its colour; an unfinished question has its status."""


class ReportedQuestion(Struct, frozen=True, kw_only=True):
    """A question; gold_found: whether all gold paragraphs were collected, None where none are published.

    details: of an answer, as JSON, where their type has no form of its own.
    explanation: why the answer is wrong, where it is; cause_labels: what people say of that.
    """

    number: int
    key: str
    text: str
    status: str
    verdict: Verdict
    gold_found: bool | None
    answer: str
    gold: str
    em: str
    cover: str
    f1: str
    recall: str
    gold_paragraphs: tuple[FoundGold, ...]
    reason: str
    steps: tuple[ReportedStep, ...]
    reasoning: ShownTree | None = None
    weighing: ReportedWeighing | None = None
    details: str = ""
    ended_by: str = ""
    explanation: Explanation | None = None
    cause_labels: tuple[CauseLabel, ...] = ()

    @property
    def mark(self) -> str:
        """The verdict in words; the status of a question without an answer."""
        if self.verdict == "unfinished":
            return "… not finished" if self.status == QuestionStatus.OPEN else f"! {self.status}"
        return MARKS[self.verdict]

    @property
    def classes(self) -> str:
        """The classes by which filters choose it."""
        gold = {None: "", True: "gold-found", False: "gold-missing"}[self.gold_found]
        cause = f"cause-{self.explanation.cause.slug}" if self.explanation else ""
        return " ".join(filter(None, ("q", self.verdict, gold, cause)))


class Filter(Struct, frozen=True, kw_only=True):
    """A choice of questions; name: of its control on the page; questions: how many it shows."""

    name: str
    title: str
    questions: int


FILTERS: Mapping[str, tuple[str, Callable[[ReportedQuestion], bool]]] = {
    "all": ("all", lambda _: True),
    "right": ("right", lambda each: each.verdict == "right"),
    "wrong": ("wrong", lambda each: each.verdict == "wrong"),
    "found": ("gold found, answer wrong", lambda each: each.verdict == "wrong" and each.gold_found is True),
    "missing": ("gold paragraphs missing", lambda each: each.gold_found is False),
    "unfinished": ("not finished", lambda each: each.verdict == "unfinished"),
}
"""Titles and conditions of the filters by name; the style sheet hides what they leave out, without a script."""


def filters(questions: Sequence[ReportedQuestion]) -> list[Filter]:
    """All filters, with the number of questions that each shows."""
    return [
        Filter(name=name, title=title, questions=sum(map(shows, questions))) for name, (title, shows) in FILTERS.items()
    ]


def cause_filters(questions: Sequence[ReportedQuestion]) -> list[Filter]:
    """A filter for each cause that a wrong answer has, in the order of precedence."""
    counts = Counter(each.explanation.cause for each in questions if each.explanation)
    return [
        Filter(name=f"cause-{cause.slug}", title=cause, questions=counts[cause]) for cause in Cause if counts[cause]
    ]


def reported_question(
    record: RunRecord,
    place: int,
    question: TracedQuestion,
    row: QuestionScores,
    cause_labels: Sequence[CauseLabel] = (),
) -> ReportedQuestion:
    """The question; place: its number in the run, from 1; cause_labels: of the cause of its wrong answer."""
    details, names, steps = details_of(record, question), names_in(question), list(shown_steps(question))
    weighed = (
        reported_weighing(details, steps, question.answers, record.dataset) if isinstance(details, Weighing) else None
    )
    tree = shown_tree(details, names) if isinstance(details, Tree) else None
    labels = turns(record, question)
    other = "" if weighed or tree or question.details is None else msgspec.json.encode(question.details).decode()
    return ReportedQuestion(
        number=place,
        key=question.key,
        text=question.text,
        status=question.status,
        verdict=verdict_of(question, details, row),
        gold_found=None if row["paragraph_recall"] is None else row["paragraph_recall"] == 1,
        answer=question.answer or ("(empty)" if question.status == QuestionStatus.FINISHED else ""),
        gold=" / ".join(question.answers),
        em=percent(row["answer_em"]),
        cover=percent(row["cover_em"]),
        f1=percent(row["answer_f1"]),
        recall=percent(row["paragraph_recall"]),
        gold_paragraphs=() if row["paragraph_recall"] is None else gold_paragraphs(question, record.dataset),
        reason=f"{question.reason.type}: {question.reason.message}" if question.reason else "",
        steps=tuple(reported_step(step, turn=labels.get(step.sequence, "")) for step in steps),
        reasoning=tree,
        weighing=weighed,
        details=other,
        ended_by=question.ended_by,
        explanation=explained(record, question, details, row),
        cause_labels=tuple(cause_labels),
    )


def reported_paragraphs(record: RunRecord, questions: Sequence[TracedQuestion]) -> list[tuple[str, Paragraph]]:
    """Every paragraph that was collected or that a sentence was judged by, once, by title."""
    by_anchor = {anchor_of(each.digest): each for question in questions for each in _paragraphs(record, question)}
    return sorted(by_anchor.items(), key=lambda item: (item[1].title, item[0]))


def _paragraphs(record: RunRecord, question: TracedQuestion) -> list[Paragraph]:
    details = details_of(record, question)
    if not isinstance(details, Weighing):
        return list(question.paragraphs)
    of_chains = (each.evidence for chain in details.chains for each in chain.sentences)
    evidence = {*of_chains, *(each.evidence for each in details.facts)}
    return [*question.paragraphs, *(each for digest, each in found_in(question).items() if digest in evidence)]
