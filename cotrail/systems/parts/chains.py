"""Sampling of diverse chains of thought (Wang et al., 2022; Rethinking with Retrieval, section 3)."""

from collections.abc import Sequence

from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.questions import Question
from cotrail.core.system import Answer, Part
from cotrail.faithfulness.paper import sentences
from cotrail.faithfulness.rules import inferred, prediction, unified
from cotrail.faithfulness.weighing import Vote, WeighedChain, Weighing
from cotrail.systems.parts.rules import StepBound
from cotrail.systems.parts.steps import texts_of
from cotrail.systems.parts.tasks import SampledSettings, task_prompt


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


def most_chains(settings: SampledSettings) -> tuple[StepBound, ...]:
    """The steps that sample chains."""
    chains, output = settings.chain_count, settings.max_chain_tokens
    return (StepBound(kind="reason", times=chains, in_turn=1, output=output, form=AnswerForm.COT),)


# The answer that most chains state (Wang et al., 2022).


def voted(chains: Sequence[str], settings: SampledSettings) -> Answer:
    """The answer that most of the chains state, with the chain that states it."""
    task, rules = settings.task, settings.chain_rules
    predictions = unified((prediction(chain, task, rules) for chain in chains), task, rules)
    # With the same faithfulness for every chain, faithful inference is a majority vote.
    inference = inferred([Vote(each, faithfulness=1.0) for each in predictions], task, rules, voting=True)
    weighing = Weighing(
        function=0,
        chains=tuple(
            WeighedChain(number=number, text=chain, prediction=each, faithfulness=1.0, sentences=())
            for number, (chain, each) in enumerate(zip(chains, predictions, strict=True))
        ),
        predictions=inference.predictions,
        chosen=inference.chosen,
    )
    chosen = "" if inference.chosen is None else chains[inference.chosen]
    return Answer(text=inference.prediction.strip(), sentences=sentences(chosen), details=weighing)
