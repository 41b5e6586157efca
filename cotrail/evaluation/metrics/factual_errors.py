"""Factual errors in chains of thought, as annotators mark them (IRCoT, section 5, figure 7).

A chain has a factual error if at least one of its facts is untrue; the facts are the sentences before the one that
states the answer.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from statistics import fmean

from msgspec import Struct

from cotrail.common.sentence_boundaries import sentences
from cotrail.core.answer_extraction import stated_answer
from cotrail.faithfulness.weighing import WeighedChain, Weighing


class SentenceMark(Struct, frozen=True, kw_only=True):
    """An annotator's judgement of a sentence.

    position: of the sentence in its chain, from 0; marked_at: when it was stored, None before.
    """

    question_id: str
    position: int
    annotator: str
    is_true: bool
    note: str = ""
    marked_at: datetime | None = None


class AnnotatedChain(Struct, frozen=True, kw_only=True):
    """A question's chain of thought with the annotators' marks."""

    question_id: str
    sentences: tuple[str, ...]
    marks: tuple[SentenceMark, ...]


def sentences_of(chain: str) -> tuple[str, ...]:
    """Split a chain that was generated as one text into sentences."""
    return tuple(sentences(chain))


def facts(sentences: tuple[str, ...]) -> tuple[int, ...]:
    """Positions of the sentences that state facts; all of them if none states the answer."""
    stating = (position for position, sentence in enumerate(sentences) if stated_answer(sentence) is not None)
    return tuple(range(max(stating, default=len(sentences))))


def factual_errors(chains: Iterable[AnnotatedChain]) -> dict[str, bool]:
    """Return by question id whether the chain has a factual error.

    The majority of a sentence's marks decides; a tie counts as untrue. A chain without an error so far is left out
    until all of its facts are marked.
    """
    errors = ((chain.question_id, _has_error(chain)) for chain in chains)
    return {question_id: error for question_id, error in errors if error is not None}


def untrue(chain: AnnotatedChain) -> frozenset[int]:
    """Positions of the sentences marked untrue, by majority as in `factual_errors`."""
    return frozenset(position for position in range(len(chain.sentences)) if _is_true(chain, position) is False)


def sample(question_ids: Iterable[str], count: int, seed: int) -> frozenset[str]:
    """Draw `count` questions by the seed; the draw depends on the ids alone, so it is the same for every system."""
    ordered = sorted(question_ids, key=lambda key: hashlib.sha256(f"{seed} {key}".encode()).digest())
    return frozenset(ordered[:count])


def _has_error(chain: AnnotatedChain) -> bool | None:
    positions = facts(chain.sentences)
    verdicts = [_is_true(chain, position) for position in positions]
    if False in verdicts:
        return True
    return None if None in verdicts or not verdicts else False


def _is_true(chain: AnnotatedChain, position: int) -> bool | None:
    marks = [mark.is_true for mark in chain.marks if mark.position == position]
    return 2 * sum(marks) > len(marks) if marks else None


# Faithfulness of explanations to the evidence (Rethinking with Retrieval, section 5.3 and table 5).
#
# The metric is that of Honovich et al. (2022), entailment of the facts by the evidence, with the run's own model.


def explanation_faithfulness(weighing: Weighing) -> float | None:
    """Mean entailment of the facts behind an answer, from 0 to 1; a fact without evidence counts 0.

    The facts are those of a variant's final inference, else those of the chain that represents the answer. None where
    there are none, or where chains voted without evidence.
    """
    if not weighing.function:
        return None
    if weighing.facts:
        return fmean(fact.entailment for fact in weighing.facts)
    return next((_entailment(chain) for chain in weighing.chains if chain.number == weighing.chosen), None)


def chain_faithfulness(weighing: Weighing) -> tuple[float, ...]:
    """The same for each chain that has facts, as if it were the only one: repeated chain-of-thought prompting."""
    return tuple(each for each in map(_entailment, weighing.chains) if each is not None) if weighing.function else ()


def _entailment(chain: WeighedChain) -> float | None:
    return fmean(sentence.entailment for sentence in chain.sentences) if chain.sentences else None
