"""Rethinking with Retrieval: faithful inference over sampled chains of thought (He et al., 2022).

The last step of the variants: the answer inferred from supporting facts (section 5.3 and appendix A.5).
"""

from collections.abc import Iterable, Mapping
from itertools import chain as concatenated
from typing import get_args

from msgspec.structs import replace

from cotrail.core.actions.generate import Read
from cotrail.core.binding import MODEL
from cotrail.core.demonstrations import AnswerForm, Demonstrations, Shots
from cotrail.core.ports.encoders import EMBEDDER, ENTAILER
from cotrail.core.ports.retriever import Source
from cotrail.core.ports.role import INFERRER
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph, Question, passage_of
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System, expect
from cotrail.faithfulness.paper import sentences
from cotrail.faithfulness.rules import ScoredChain, ScoredFact, facts, prediction, weigh
from cotrail.faithfulness.weighing import Evidence, Weighing
from cotrail.systems.parts.majority import OPENINGS, sample_chains, task_answer, task_prompt, task_question, voted
from cotrail.systems.parts.prompting import shown
from cotrail.systems.parts.reading import reader_prompt
from cotrail.systems.parts.rules import RELEASED_CHAINS, Limited
from cotrail.systems.parts.steps import texts_before
from cotrail.systems.rethinking.evidence import ENTITY_QUESTIONS, SPANS, find_evidence, generate_facts, select_facts
from cotrail.systems.rethinking.settings import RethinkingSettings
from cotrail.systems.spec import Needs, SystemSpec, description


def infer_answer(question: Question, facts: tuple[str, ...], shots: Shots, settings: RethinkingSettings) -> Part[str]:
    """The answer by the settings' way of inferring; facts: the supporting ones."""
    if settings.inference == "reader":
        prompt, max_tokens = _reader_prompt(question, facts, shots, settings), settings.reading.max_tokens
    else:
        prompt, max_tokens = _bare_prompt(question, facts, settings), settings.reading.max_answer_tokens
    model = INFERRER.name if settings.infers_elsewhere else MODEL
    reading = Read(prompt=prompt, max_tokens=max_tokens, until=settings.until, model=model)
    text = expect((yield reading), Generated).text
    if settings.inference == "reader":
        text = settings.reading.answer_in(text)
    return task_answer(text, settings)


def _reader_prompt(question: Question, facts: tuple[str, ...], shots: Shots, settings: RethinkingSettings) -> Prompt:
    """The reader's: `cot` continues the facts, as the beginning of a chain; `direct` is shown them as a paragraph."""
    continues = settings.reading.reader == "cot"
    task_form = replace(question, text=task_question(question, settings.task))
    shown_facts = () if continues else _passage(facts)
    return reader_prompt(
        task_form,
        shown(question, shown_facts),
        shots,
        settings.reading,
        settings.prompting,
        sentences=facts if continues else (),
        layout=settings.prompt_layout,
    )


def _bare_prompt(question: Question, facts: tuple[str, ...], settings: RethinkingSettings) -> Prompt:
    """Without demonstrations: as zero-shot prompting does, or in UnifiedQA's form."""
    if settings.inference == "unifiedqa":
        settings = replace(settings, layout="unifiedqa")
    opening = "" if settings.inference == "unifiedqa" else OPENINGS[settings.task]
    return task_prompt(question, Demonstrations(), settings, opening, _passage(facts))


def _passage(facts: tuple[str, ...]) -> tuple[Paragraph, ...]:
    return (passage_of(" ".join(facts)),) if facts else ()


def rethinking(question: Question, shots: Shots, settings: RethinkingSettings) -> System:
    """Sample chains, look up evidence for each of their facts, and return the answer that it supports best.

    A variant then selects or generates supporting facts in place of the best chain's, and infers the answer from them.
    The paragraphs of the answer are the evidence of the best chain, then that of the others.
    """
    chains: tuple[str, ...] = ()
    with Limited() as end:
        chains = yield from sample_chains(question, shots, settings)
        return (yield from _weighed(question, chains, shots, settings))
    # Without the evidence for all of their facts, the chains count alike.
    return voted(chains or texts_before(end), settings)


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


def run_needs(settings: RethinkingSettings) -> Needs:
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
    **description("rethinking"),
    settings=RethinkingSettings,
    open=rethinking,
    needs=run_needs,
    released=RELEASED_CHAINS,
    readerless=True,
    states_answer=True,
    details=Weighing,
)
