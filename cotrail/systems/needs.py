"""What a run of a system needs beside its language model, which its settings decide."""

from typing import get_args

from msgspec import Struct

from cotrail.core.auxiliary_questions import ENTITY_QUESTIONS, SPANS
from cotrail.core.ports.knowledge import Source
from cotrail.core.prompts import AnswerForm, Demonstrations
from cotrail.systems.reading import Shots
from cotrail.systems.settings import (
    BaselineSettings,
    IRCoTSettings,
    NoRetrievalSettings,
    OneStepSettings,
    ReaderSettings,
    RethinkingSettings,
    SelfConsistencySettings,
    ZeroShotSettings,
)


class Needs(Struct, frozen=True, kw_only=True):
    """What a run has to name, or its store to hold.

    forms: the forms in which the run's demonstrations are shown, those of titles aside.
    brought: demonstrations of the system's own, which belong to the run's as well.
    corpus: whether paragraphs are searched for; knowledge: which other sources are asked.
    evidence: whether the paragraphs that a dataset names as evidence are looked at, which are the corpus's then.
    weighs: whether sentences are embedded and entailment is judged.
    samples: whether several chains are drawn, which come out alike again in the profile `deterministic` alone.
    """

    forms: frozenset[AnswerForm] = frozenset()
    brought: Shots = {}
    corpus: bool = False
    evidence: bool = False
    knowledge: tuple[Source, ...] = ()
    weighs: bool = False
    samples: bool = False


def of_ircot(settings: IRCoTSettings) -> Needs:
    """Chains, a reader and a corpus."""
    return Needs(forms=_read(settings.reading) | {AnswerForm.COT}, corpus=True)


def of_one_step(settings: OneStepSettings) -> Needs:
    """A reader and a corpus."""
    return Needs(forms=_read(settings.reading), corpus=True)


def of_no_retrieval(settings: NoRetrievalSettings) -> Needs:
    """A reader."""
    return Needs(forms=_read(settings.reading))


def of_zero_shot(_: ZeroShotSettings) -> Needs:
    """No demonstrations; that there are none is stored like any others."""
    return Needs(brought={AnswerForm.DIRECT: Demonstrations()})


def of_few_shot(_: BaselineSettings) -> Needs:
    """Answers."""
    return Needs(forms=frozenset({AnswerForm.DIRECT}))


def of_chain_of_thought(_: BaselineSettings) -> Needs:
    """A chain."""
    return Needs(forms=frozenset({AnswerForm.COT}))


def of_self_consistency(_: SelfConsistencySettings) -> Needs:
    """Several chains."""
    return Needs(forms=frozenset({AnswerForm.COT}), samples=True)


def of_rethinking(settings: RethinkingSettings) -> Needs:
    """Chains and evidence; the variants a reader, and fact generation what it asks with."""
    generates = settings.variant == "generation"
    is_read = settings.infers and settings.inference == "reader"
    asks = {AnswerForm.QUESTION: ENTITY_QUESTIONS, AnswerForm.SPAN: SPANS} if generates else {}
    bare = {AnswerForm.DIRECT: Demonstrations()} if settings.infers and not is_read else {}
    return Needs(
        forms=frozenset({AnswerForm.COT}) | (_read(settings.reading) if is_read else frozenset()),
        brought={**asks, **bare},
        evidence="evidence" in settings.sources and settings.evidence == "paragraphs",
        corpus=not {"corpus", "evidence"}.isdisjoint(settings.sources),
        knowledge=tuple(source for source in get_args(Source) if source in settings.sources),
        weighs=True,
        samples=True,
    )


def _read(settings: ReaderSettings) -> frozenset[AnswerForm]:
    return frozenset() if settings.reader == "none" else frozenset({AnswerForm(settings.reader)})
