"""Sampling of diverse chains of thought (Wang et al., 2022; Rethinking with Retrieval, section 3)."""

from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.questions import Question
from cotrail.core.system import Part
from cotrail.systems.parts.most import Most
from cotrail.systems.parts.steps import texts_of
from cotrail.systems.parts.task_settings import SampledSettings
from cotrail.systems.parts.tasks import task_prompt


def sample_chains(question: Question, shots: Shots, settings: SampledSettings) -> Part[tuple[str, ...]]:
    """As many chains as the settings say, all of one prompt; a chain is empty if the model wrote nothing."""
    prompt = task_prompt(question, shots[AnswerForm.COT], settings)
    return (
        yield from texts_of(
            Reason(
                prompt=prompt,
                max_tokens=settings.max_chain_tokens,
                until=settings.until,
                sample=number,
                temperature=settings.temperature,
            )
            for number in range(settings.chain_count)
        )
    )


def most_chains(settings: SampledSettings) -> tuple[Most, ...]:
    """The steps that sample chains."""
    chains, output = settings.chain_count, settings.max_chain_tokens
    return (Most(kind="reason", times=chains, in_turn=1, output=output, form=AnswerForm.COT),)
