"""How an answer was weighed among those of several chains, as a run's page shows it."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from cotrail.common.printable_text import cut, one_line
from cotrail.common.short_digests import shortened
from cotrail.core.paragraphs import Paragraph
from cotrail.core.views import name_of
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.answer_scores import answer_scores
from cotrail.faithfulness.weighing import ChosenFact, WeighedChain, WeighedPrediction, WeighedSentence, Weighing
from cotrail.models.queries.traces import TracedQuestion
from cotrail.services.views.paragraph_names import found_in
from cotrail.services.views.reports.paragraph_links import SNIPPET, anchor_of
from cotrail.services.views.shown_steps import ShownStep

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
    """An answer with its weight and the numbers of its chains.

    right: whether it is a published answer; None where none is published.
    """

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


def evidence_paragraphs(weighing: Weighing, question: TracedQuestion) -> list[Paragraph]:
    """The paragraphs by which the sentences were judged."""
    of_chains = (each.evidence for chain in weighing.chains for each in chain.sentences)
    evidence = {*of_chains, *(each.evidence for each in weighing.facts)}
    return [paragraph for digest, paragraph in found_in(question).items() if digest in evidence]


def _prediction(
    each: WeighedPrediction, weighing: Weighing, answers: Sequence[str], dataset: str
) -> ReportedPrediction:
    scores = answer_scores(scoring_of(dataset), each.prediction, answers)
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
