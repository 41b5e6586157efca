"""Rethinking with Retrieval: faithful inference over sampled chains of thought (He et al., 2022)."""

from collections.abc import Iterable, Mapping
from itertools import chain as concatenated

from msgspec.structs import replace

from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.faithfulness.chains import ScoredChain, ScoredFact, weigh
from cotrail.faithfulness.paper import sentences
from cotrail.faithfulness.rules import facts, prediction
from cotrail.faithfulness.weighing import Weighing
from cotrail.systems.parts.chains import sample_chains
from cotrail.systems.parts.reading import Shots
from cotrail.systems.rethinking.evidence import Evidence, find_evidence
from cotrail.systems.rethinking.fact_generation import generate_facts
from cotrail.systems.rethinking.fact_selection import select_facts
from cotrail.systems.rethinking.inferring import infer_answer
from cotrail.systems.rethinking.settings import RethinkingSettings


def rethinking(question: Question, shots: Shots, settings: RethinkingSettings) -> System:
    """Samples chains, looks up evidence for each of their facts, and returns the answer that it bears out best.

    A variant then selects or generates supporting facts in place of the best chain's, and infers the answer from them.
    The paragraphs of the answer are the evidence of the best chain and then that of the others.
    """
    chains = yield from sample_chains(question, shots, settings)
    stated = tuple(facts(chain, settings.task, settings.chain_rules) for chain in chains)
    evidence = yield from find_evidence(question, concatenated.from_iterable(stated), settings)
    weighing = _weigh(chains, stated, evidence, settings)
    text = weighing.predictions[0].prediction.strip() if weighing.predictions else ""
    if weighing.chosen is None:
        return Answer(text=text, paragraphs=_paragraphs(evidence, evidence), weighing=weighing)
    best = stated[weighing.chosen]
    answer = Answer(
        text=text,
        sentences=sentences(chains[weighing.chosen]),
        paragraphs=_paragraphs((*best, *evidence), evidence),
        weighing=weighing,
    )
    if settings.variant == "basic":
        return answer
    supporting = yield from select_facts(best, evidence, settings)
    if settings.variant == "generation":
        supporting = yield from generate_facts(supporting, evidence, shots, settings)
    told = tuple(dict.fromkeys(fact.text for fact in supporting))
    if settings.infers:
        text = yield from infer_answer(question, told, shots, settings)
    return replace(answer, text=text, sentences=told, weighing=replace(weighing, facts=supporting))


def _weigh(
    chains: Iterable[str],
    stated: Iterable[tuple[str, ...]],
    evidence: Mapping[str, Evidence],
    settings: RethinkingSettings,
) -> Weighing:
    """How the evidence for their facts decides between the chains (equation 1)."""
    scored = (
        ScoredChain(
            text=chain,
            prediction=prediction(chain, settings.task, settings.chain_rules),
            facts=tuple(_scored(f, evidence[f]) for f in each),
        )
        for chain, each in zip(chains, stated, strict=True)
    )
    return weigh(
        tuple(scored),
        settings.task,
        function=settings.faithfulness_function,
        thresholds=settings.thresholds,
        voting=settings.voting,
        rules=settings.chain_rules,
    )


def _scored(fact: str, evidence: Evidence) -> ScoredFact:
    return ScoredFact(
        text=fact, scores=evidence.scores, evidence=evidence.paragraph.digest if evidence.paragraph else None
    )


def _paragraphs(stated: Iterable[str], evidence: Mapping[str, Evidence]) -> tuple[Paragraph, ...]:
    """The evidence of these facts in their order, each paragraph once."""
    return tuple(dict.fromkeys(p for fact in stated if (p := evidence[fact].paragraph) is not None))
