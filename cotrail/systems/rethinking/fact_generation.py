"""Variant II of Rethinking with Retrieval: fact generation (section 5.3 and appendix A.4).

The paper has a separate trained model for each step; here the run's language model takes all of them.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.answer_normalization import normalized
from cotrail.core.actions.entail import Entail
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import AnswerForm, Demonstrations, Shots
from cotrail.core.few_shot import few_shot_prompt
from cotrail.core.paragraphs import Paragraph, passage_of
from cotrail.core.results import Entailed
from cotrail.core.system import Part
from cotrail.faithfulness.scores import Evidence, Scores, Thresholds
from cotrail.faithfulness.weighing import ChosenFact
from cotrail.systems.parts.reader_settings import ReaderSettings
from cotrail.systems.parts.steps import all_of, texts_of
from cotrail.systems.rethinking.entities import Entity, entities
from cotrail.systems.rethinking.fact_questions import UNKNOWN, entity_question
from cotrail.systems.rethinking.settings import RethinkingSettings


class _Draft(Struct, frozen=True, kw_only=True):
    """A part of a fact that the fact's evidence may contradict, and a question about it."""

    fact: str
    entity: Entity
    paragraph: Paragraph
    question: str = ""


def generate_facts(
    facts: Sequence[ChosenFact], evidence: Mapping[str, Evidence], shots: Shots, settings: RethinkingSettings
) -> Part[tuple[ChosenFact, ...]]:
    """The facts; those that their evidence doesn't support are replaced by statements corrected by the evidence.

    A statement replaces a fact if the evidence supports it (E >= T_e and C < T_c) and entails it more than the fact. Of
    several the most entailed does, of equals the earliest.
    """
    # Each stage asks for all drafts at once, so that a question takes as many rounds of the model as there are stages.
    drafts = _drafts(facts, evidence, settings.thresholds)
    drafts = yield from _questioned(drafts, shots[AnswerForm.QUESTION], settings.reading)
    drafts = yield from _answerable(drafts, shots[AnswerForm.SPAN], settings.reading)
    statements = yield from _statements(drafts, shots[AnswerForm.SPAN], settings.reading)
    judged = yield from all_of(
        (Entail(premise=draft.paragraph, hypothesis=statement) for draft, statement in statements), Entailed
    )
    best: dict[str, tuple[str, Scores | Entailed]] = {
        fact.text: (fact.text, evidence[fact.text].scores) for fact in facts
    }
    for (draft, statement), entailed in zip(statements, judged, strict=True):
        if _supports(entailed, settings.thresholds) and entailed.entailment > best[draft.fact][1].entailment:
            best[draft.fact] = statement, entailed
    return tuple(_generated(fact, *best[fact.text]) for fact in facts)


def _generated(fact: ChosenFact, statement: str, scores: Scores | Entailed) -> ChosenFact:
    if statement == fact.text:
        return fact
    return replace(
        fact,
        text=statement,
        origin="generated",
        entailment=scores.entailment,
        contradiction=scores.contradiction,
    )


def _drafts(
    facts: Iterable[ChosenFact], evidence: Mapping[str, Evidence], thresholds: Thresholds
) -> tuple[_Draft, ...]:
    """The entities of the facts that have evidence which doesn't support them."""
    return tuple(
        _Draft(fact=fact, entity=entity, paragraph=paragraph)
        for fact in dict.fromkeys(fact.text for fact in facts)
        if (paragraph := evidence[fact].paragraph) is not None and not _supports(evidence[fact].scores, thresholds)
        for entity in entities(fact)
    )


def _supports(scores: Scores | Entailed, thresholds: Thresholds) -> bool:
    return scores.entailment >= thresholds.entailment and scores.contradiction < thresholds.contradiction


def _questioned(
    drafts: tuple[_Draft, ...], demonstrations: Demonstrations, reading: ReaderSettings
) -> Part[tuple[_Draft, ...]]:
    """The drafts with a question about each entity; those for which the model writes none are left out."""
    prompts = (
        few_shot_prompt(demonstrations=demonstrations, question=entity_question(draft.fact, draft.entity.text))
        for draft in drafts
    )
    questions = yield from texts_of(
        Reason(prompt=prompt, max_tokens=reading.max_answer_tokens, until="line") for prompt in prompts
    )
    return tuple(replace(draft, question=text) for draft, text in zip(drafts, questions, strict=True) if text)


def _answerable(
    drafts: tuple[_Draft, ...], demonstrations: Demonstrations, reading: ReaderSettings
) -> Part[tuple[_Draft, ...]]:
    """The drafts whose question, asked of the fact itself, has the entity as its answer (Honovich et al., 2021)."""
    answers = yield from texts_of(
        _ask(draft.question, passage_of(draft.fact), demonstrations, reading) for draft in drafts
    )
    return tuple(
        draft
        for draft, answer in zip(drafts, answers, strict=True)
        if normalized(answer) == normalized(draft.entity.text)
    )


def _statements(
    drafts: tuple[_Draft, ...], demonstrations: Demonstrations, reading: ReaderSettings
) -> Part[tuple[tuple[_Draft, str], ...]]:
    """The facts with the evidence's answer in place of the entity, where that differs."""
    answers = yield from texts_of(_ask(draft.question, draft.paragraph, demonstrations, reading) for draft in drafts)
    stated = (
        (draft, draft.entity.replaced(draft.fact, answer.removesuffix(".")))
        for draft, answer in zip(drafts, answers, strict=True)
        if normalized(answer) not in {"", UNKNOWN, normalized(draft.entity.text)}
    )
    return tuple(stated)


def _ask(question: str, paragraph: Paragraph, demonstrations: Demonstrations, reading: ReaderSettings) -> Read:
    prompt = few_shot_prompt(demonstrations=demonstrations, paragraphs=(paragraph,), question=question)
    return Read(prompt=prompt, max_tokens=reading.max_answer_tokens)
