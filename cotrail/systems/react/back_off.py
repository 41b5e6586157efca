"""ReAct and self-consistency, one where the other fails: ReAct → CoT-SC and CoT-SC → ReAct (Yao et al., 2023, 3.2)."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, plain
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Answer, Part, System
from cotrail.systems.parts.answers import behind, lines
from cotrail.systems.parts.majority import Votes, majority
from cotrail.systems.parts.prompting import chosen_words, own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.steps import texts_before, texts_of
from cotrail.systems.react import react as acting
from cotrail.systems.react.react import STEPS, ReActSettings, react
from cotrail.systems.spec import SystemSpec, description

CHAINS = own_words("react_chains")
OWN: Mapping[str, str] = dict(sorted({**acting.OWN, **CHAINS}.items()))


class BackOffSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ReAct and self-consistency."""

    react: ReActSettings = ReActSettings()

    chains: Annotated[int, Meta(ge=1, le=100)] = 21
    """The chains of thought that vote (n)."""

    temperature: Temperature = 0.7
    """The temperature at which chains are sampled."""

    max_chain_tokens: Positive = 256
    """The most tokens of a chain."""


class Voted(Struct, frozen=True, kw_only=True):
    """The chains of thought of a question, and their vote."""

    chains: tuple[str, ...]
    votes: Votes

    def answer(self, paragraphs: tuple[Paragraph, ...] = (), limit: str = "") -> Answer:
        """The answer that won, with the chain that has it."""
        chosen = self.votes.chosen
        sentences = () if chosen is None else lines(self.chains[chosen])
        text = self.votes.winner
        return Answer(text=text, sentences=sentences, paragraphs=paragraphs, details=self.votes, limit=limit)


def react_self_consistency(question: Question, shots: Shots, settings: BackOffSettings) -> System:
    """Have ReAct answer, and where none of its steps does, the majority of chains of thought."""
    acted = yield from react(question, shots, settings.react)
    if acted.text or acted.limit not in ("", STEPS):
        return acted
    with Limited() as end:
        voted = yield from self_consistency(question, shots, settings)
        return voted.answer(acted.paragraphs)
    return voted_by(texts_before(end)).answer(acted.paragraphs, end.limit)


def self_consistency_react(question: Question, shots: Shots, settings: BackOffSettings) -> System:
    """Have the majority of chains of thought answer, and where fewer than half of them agree, ReAct."""
    with Limited() as end:
        voted = yield from self_consistency(question, shots, settings)
    if end.limit:
        return voted_by(texts_before(end)).answer(limit=end.limit)
    if voted.votes.agree:
        return voted.answer()
    acted = yield from react(question, shots, settings.react)
    return replace(acted, details=voted.votes) if acted.text else voted.answer(acted.paragraphs, acted.limit)


def self_consistency(question: Question, shots: Shots, settings: BackOffSettings) -> Part[Voted]:
    """The vote of chains of thought that are sampled without any search."""
    examples = chosen_words(shots, CHAINS, "chain_examples")
    words = worded(shots, CHAINS, "chain", chain_examples=examples, question=Asked(question.text))
    prompt = Prompt(turns=(plain(*words),))
    chains = yield from texts_of(
        Reason(
            prompt=prompt,
            max_tokens=settings.max_chain_tokens,
            until="stop",
            stop=("\nQuestion:",),
            sample=number,
            temperature=settings.temperature,
        )
        for number in range(settings.chains)
    )
    return voted_by(chains)


def voted_by(chains: tuple[str, ...]) -> Voted:
    """The vote of these chains."""
    return Voted(chains=chains, votes=majority(behind(chain, "\nAnswer:") or "" for chain in chains))


def step_bounds(question: Question, settings: BackOffSettings) -> tuple[StepBound, ...]:
    """See `SystemSpec`."""
    count, output = settings.chains, settings.max_chain_tokens
    form = AnswerForm.PROMPT
    chains = StepBound(kind="reason", times=count, in_turn=1, output=output, words=words_in(CHAINS), form=form)
    return (chains, *acting.step_bounds(question, settings.react))


SPEC = SystemSpec(
    **description("react-self-consistency"),
    settings=BackOffSettings,
    open=react_self_consistency,
    needs=lambda settings: replace(acting.SPEC.needs(settings.react), words=OWN, samples=True),
    step_bounds=step_bounds,
    details=Votes,
)

SPECS = (SPEC, replace(SPEC, **description("self-consistency-react"), open=self_consistency_react))
