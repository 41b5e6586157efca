"""The tasks of Rethinking with Retrieval as a model is asked them (sections 4.1 and A.1), and votes over its samples.

The answer that most samples of a system have wins (Wang et al., 2022).
"""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.answer_normalization import normalized
from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Prompted, Reason
from cotrail.core.answer_extraction import OPENING, YES_OR_NO
from cotrail.core.demonstrations import AnswerForm, Demonstrations, Layout, Shots
from cotrail.core.generation import Until
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Action, Answer, Part, Reply, Together, asking_by
from cotrail.faithfulness.paper import sentences
from cotrail.faithfulness.rules import inferred, prediction, unified
from cotrail.faithfulness.tasks import ChainRules, Task
from cotrail.faithfulness.weighing import Vote, WeighedChain, Weighing
from cotrail.systems.parts.prompting import PromptSettings, few_shot_prompt, instructed, shown
from cotrail.systems.parts.rules import StepBound
from cotrail.systems.parts.steps import texts_of

# The settings of prompts for the tasks of Rethinking with Retrieval (sections 4.1 and A.1).

LAYOUTS: dict[Task, Layout] = {"commonsense": "qa", "temporal": "qa", "tabular": "entailment"}
"""The layout of each task's prompts (Rethinking with Retrieval, appendix A.1)."""


class TaskSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prompts for the questions of a task, and the reading of what the model writes."""

    task: Task = "commonsense"
    """The form of questions and predictions: yes or no, a text, or true or false."""

    prompting: PromptSettings = PromptSettings()
    layout: Layout | None = None
    """How prompts are laid out; the task's own unless given."""

    until: Until = "chain"
    """Where a text ends: behind a sentence, at the line's end, before a further demonstration (`chain`), or where
    the model ends it. The paper's chains end where the model ends them or begins a further demonstration."""

    chain_rules: ChainRules = "paper"
    """The rules by which chains are read and weighed: the paper's, or those of the released code."""

    @property
    def prompt_layout(self) -> Layout:
        """The layout of prompts."""
        return self.layout or LAYOUTS[self.task]


class BaselineSettings(TaskSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prompt without any knowledge source, answered once (Rethinking with Retrieval, sections 4.1 and 4.5)."""

    max_tokens: Positive = 256
    """The most tokens that the model writes."""


class SampledSettings(TaskSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several chains of thought (Wang et al., 2022), sampled as in Rethinking with Retrieval, section 4.5."""

    chains: Positive | None = None
    """The number of chains; 10 unless given, and 9 for yes or no."""

    temperature: Temperature = 0.7
    """The temperature at which chains are sampled."""

    max_chain_tokens: Positive = 256
    """The most tokens of a chain."""

    @property
    def chain_count(self) -> int:
        """The number of chains that are sampled."""
        return self.chains or (9 if self.task == "commonsense" else 10)


OPENINGS: dict[Task, str] = {"commonsense": "So the answer is", "temporal": "The answer is", "tabular": ""}
"""The beginning of the answer that zero-shot prompts have the model continue (the released code)."""


def task_question(question: Question, task: Task) -> str:
    """The question as the task asks it."""
    return f"{YES_OR_NO}{question.text}" if task == "commonsense" else question.text


def task_prompt(
    question: Question,
    demonstrations: Demonstrations,
    settings: TaskSettings,
    opening: str = "",
    facts: tuple[Paragraph, ...] = (),
) -> Prompt:
    """The demonstrations and the question, with no paragraph but the passage that it pins.

    opening: the beginning of the answer, which the model continues; facts: further paragraphs.
    """
    layout = settings.prompt_layout
    # UnifiedQA recognises a yes-or-no question by itself.
    question_text = question.text if layout == "unifiedqa" else task_question(question, settings.task)
    return few_shot_prompt(
        demonstrations=demonstrations,
        paragraphs=(*shown(question, ()), *facts),
        question=instructed(question_text, demonstrations.instruction),
        sentences=(opening,) if opening else (),
        drop=settings.prompting.drop,
        layout=layout,
    )


def task_answer(text: str, settings: TaskSettings) -> str:
    """The prediction in an answer that stands alone, without the sentence that states it; empty if it has none.

    The released code takes a temporal answer as it is.
    """
    if settings.chain_rules != "released":
        # The rules read statements ("So the answer is ..."), so that a bare answer is read as the end of one.
        return prediction(f"{OPENING} {text}", settings.task, settings.chain_rules)
    return text if settings.task == "temporal" else prediction(text, settings.task, settings.chain_rules)


Tie = Literal["first", "shorter"]
"""Which of the answers with the most votes wins: the one that was there first, or the shortest one."""


class CountedAnswer(Struct, frozen=True, kw_only=True):
    """An answer as the first sample that has it words it, and how many samples have it."""

    answer: str
    votes: int


class Votes(Struct, frozen=True, kw_only=True):
    """A vote.

    answers: each sample's, in their order; empty ones don't count.
    counted: the different answers, those with the most votes first; chosen: the sample whose answer won, from 0; None
        where no sample has an answer.
    """

    answers: tuple[str, ...]
    counted: tuple[CountedAnswer, ...] = ()
    chosen: int | None = None

    @property
    def winner(self) -> str:
        """The answer that won, or the empty text."""
        return "" if self.chosen is None else self.answers[self.chosen]

    @property
    def agree(self) -> bool:
        """Whether half of the samples or more have the answer that won."""
        return bool(self.counted) and 2 * self.counted[0].votes >= len(self.answers)


def same_answer(one: str, other: str) -> bool:
    """Whether a vote counts two answers as the same: the metrics' normalization makes them so."""
    return _counted_as(one) == _counted_as(other)


def majority(answers: Iterable[str], tie: Tie = "first") -> Votes:
    """The vote of these answers; see `same_answer`."""
    given = tuple(each.strip() for each in answers)
    holders: dict[str, list[int]] = {}
    for number, answer in enumerate(given):
        if answer:
            holders.setdefault(_counted_as(answer), []).append(number)

    def rank(samples: list[int]) -> tuple[int, int]:
        return -len(samples), len(given[samples[0]]) if tie == "shorter" else samples[0]

    ranked = sorted(holders.values(), key=rank)
    counted = tuple(CountedAnswer(answer=given[each[0]], votes=len(each)) for each in ranked)
    return Votes(answers=given, counted=counted, chosen=ranked[0][0] if ranked else None)


def _counted_as(answer: str) -> str:
    # Some answers are nothing but what normalization removes, such as "A".
    return normalized(answer) or answer.lower()


# A system as one of several samples: all that it has a model write is drawn again (Wang et al., 2022).

T = TypeVar("T")

MOST_SAMPLES = 1000
"""Samples that a part draws itself at most: each of its samples has a number of its own in each of ours."""


def sampled(part: Part[T], number: int, temperature: float) -> Part[T]:
    """Run a part whose generations are drawn with seeds of sample `number`, and at this temperature unless given."""

    def ask(asked: Action | Together) -> Part[Reply]:
        return (yield _drawn_all(asked, number, temperature))

    return asking_by(ask, part)


def _drawn_all(asked: Action | Together, number: int, temperature: float) -> Action | Together:
    if isinstance(asked, Together):
        return Together(tuple(_drawn(each, number, temperature) for each in asked.actions))
    return _drawn(asked, number, temperature)


def _drawn(action: Action, number: int, temperature: float) -> Action:
    if not isinstance(action, Prompted):
        return action
    sample = number if action.sample is None else (number + 1) * MOST_SAMPLES + action.sample
    return replace(action, sample=sample, temperature=temperature if action.temperature is None else action.temperature)


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
