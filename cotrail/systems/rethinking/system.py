"""Rethinking with Retrieval: faithful inference over sampled chains of thought (He et al., 2022)."""

from collections.abc import Iterable, Mapping
from itertools import chain as concatenated
from typing import get_args

from msgspec.structs import replace

from cotrail.core.demonstrations import AnswerForm, Demonstrations, Shots
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.embedder import EMBEDDER
from cotrail.core.ports.entailer import ENTAILER
from cotrail.core.ports.inferrer import INFERRER
from cotrail.core.ports.knowledge import Source
from cotrail.core.questions import Question
from cotrail.core.system import Answer, LimitReached, System
from cotrail.faithfulness.chains import ScoredChain, ScoredFact, weigh
from cotrail.faithfulness.rules import facts, prediction
from cotrail.faithfulness.scores import Evidence
from cotrail.faithfulness.sentences import sentences
from cotrail.faithfulness.weighing import Weighing
from cotrail.systems.parts.chains import sample_chains
from cotrail.systems.parts.rules import released_chains
from cotrail.systems.parts.task_settings import DEFAULTS_1
from cotrail.systems.parts.voting import voted
from cotrail.systems.rethinking.evidence import find_evidence
from cotrail.systems.rethinking.fact_generation import generate_facts
from cotrail.systems.rethinking.fact_questions import ENTITY_QUESTIONS, SPANS
from cotrail.systems.rethinking.fact_selection import select_facts
from cotrail.systems.rethinking.inferring import infer_answer
from cotrail.systems.rethinking.settings import RethinkingSettings
from cotrail.systems.spec import Needs, SystemSpec


def rethinking(question: Question, shots: Shots, settings: RethinkingSettings) -> System:
    """Sample chains, look up evidence for each of their facts, and return the answer that it supports best.

    A variant then selects or generates supporting facts in place of the best chain's, and infers the answer from them.
    The paragraphs of the answer are the evidence of the best chain, then that of the others.
    """
    chains = yield from sample_chains(question, shots, settings)
    try:
        return (yield from _weighed(question, chains, shots, settings))
    except LimitReached:
        # Without the evidence for all of their facts, the chains count alike.
        return voted(chains, settings)


def _weighed(question: Question, chains: tuple[str, ...], shots: Shots, settings: RethinkingSettings) -> System:
    """The answer of the chains by the evidence for their facts, or by the variant's own facts."""
    stated = tuple(facts(chain, settings.task, settings.chain_rules) for chain in chains)
    evidence = yield from find_evidence(question, concatenated.from_iterable(stated), settings)
    weighing = _weigh(chains, stated, evidence, settings)
    text = weighing.predictions[0].prediction.strip() if weighing.predictions else ""
    # No chain states a prediction, or by the released code yes and no are tied: there is no best chain to build on.
    if weighing.chosen is None:
        return Answer(text=text, paragraphs=_paragraphs(evidence, evidence), details=weighing)
    best = stated[weighing.chosen]
    answer = Answer(
        text=text,
        sentences=sentences(chains[weighing.chosen]),
        paragraphs=_paragraphs((*best, *evidence), evidence),
        details=weighing,
    )
    if settings.variant == "basic":
        return answer
    supporting = yield from select_facts(best, evidence, settings)
    if settings.variant == "generation":
        supporting = yield from generate_facts(supporting, evidence, shots, settings)
    stated_facts = tuple(dict.fromkeys(fact.text for fact in supporting))
    if settings.infers:
        text = yield from infer_answer(question, stated_facts, shots, settings)
    return replace(answer, text=text, sentences=stated_facts, details=replace(weighing, facts=supporting))


def _weigh(
    chains: Iterable[str],
    stated: Iterable[tuple[str, ...]],
    evidence: Mapping[str, Evidence],
    settings: RethinkingSettings,
) -> Weighing:
    """The weights of the chains and their predictions by the evidence for their facts (equation 1)."""
    scored = (
        ScoredChain(
            text=chain,
            prediction=prediction(chain, settings.task, settings.chain_rules),
            facts=tuple(
                ScoredFact(text=fact, scores=evidence[fact].scores, evidence=evidence[fact].digest) for fact in each
            ),
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


def _paragraphs(stated: Iterable[str], evidence: Mapping[str, Evidence]) -> tuple[Paragraph, ...]:
    """The evidence of these facts in their order, each paragraph once."""
    return tuple(dict.fromkeys(p for fact in stated if (p := evidence[fact].paragraph) is not None))


def needs(settings: RethinkingSettings) -> Needs:
    """Chains and evidence; for the variants a reader, and for fact generation the demonstrations of its questions."""
    # Prompts without demonstrations have an empty set of them, which is recorded like any other.
    is_read = settings.infers and settings.inference == "reader"
    asks = {AnswerForm.QUESTION: ENTITY_QUESTIONS, AnswerForm.SPAN: SPANS} if settings.variant == "generation" else {}
    bare = {AnswerForm.DIRECT: Demonstrations()} if settings.infers and not is_read else {}
    return Needs(
        forms=frozenset({AnswerForm.COT}) | (settings.reading.forms if is_read else frozenset()),
        brought={**asks, **bare},
        evidence="evidence" in settings.sources and settings.evidence == "paragraphs",
        corpus=not {"corpus", "evidence"}.isdisjoint(settings.sources),
        knowledge=tuple(source for source in get_args(Source) if source in settings.sources),
        engines=(EMBEDDER, ENTAILER, INFERRER) if settings.infers_elsewhere else (EMBEDDER, ENTAILER),
        samples=True,
    )


SPEC = SystemSpec(
    name="rethinking",
    version=2,
    title="Rethinking with retrieval",
    paper="He et al., 2022, https://arxiv.org/abs/2301.00303",
    ablations={
        "searching with the question (table 3)": {"query": "question"},
        "the most faithful chain decides (section 5.3)": {"voting": False},
    },
    settings=RethinkingSettings,
    open=rethinking,
    needs=needs,
    released=released_chains,
    readerless=True,
    states_answer=True,
    details=Weighing,
)

# Version 1 had every prompt in IRCoT's layout and read texts of one line.
SPECS = (SPEC.former(1, **DEFAULTS_1, evidence="pages"), SPEC)
