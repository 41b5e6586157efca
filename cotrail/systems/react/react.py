"""ReAct: thoughts and actions in turn, until an action gives the answer (Yao et al., 2023, section 3)."""

from typing import Annotated

from msgspec import Meta, Struct

from cotrail.common.numbers import Positive
from cotrail.core.actions.generate import Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Asked, Prompt, Written, plain
from cotrail.core.questions import Question
from cotrail.core.system import Answer, LimitReached, Part, System
from cotrail.systems.parts.most import Most, words_in
from cotrail.systems.parts.steps import text_of
from cotrail.systems.parts.words import chosen_words, own_words, worded
from cotrail.systems.react.environment import Page, PageSettings, observed, parsed
from cotrail.systems.spec import Needs, SystemSpec

OWN = own_words("react")

STEPS = "steps"
"""The limit of an answer that no step gave."""


class ReActSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ReAct."""

    pages: PageSettings = PageSettings()

    steps: Positive = 7
    """The most steps. The paper has 7 for HotpotQA and 5 for FEVER."""

    max_tokens: Positive = 100
    """The most tokens of a thought and its action."""

    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    """The temperature of thoughts and actions."""


def react(question: Question, shots: Shots, settings: ReActSettings) -> System:
    """Have the model think and act in turn: search for a page, look a word up in it, or finish."""
    prompt = opening(question, shots)
    page, limit = Page(), STEPS
    thoughts: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    try:
        for number in range(1, settings.steps + 1):
            thought, action = yield from think_and_act(prompt, number, settings)
            thoughts += (thought,)
            name, argument = parsed(action)
            if name == "finish":
                return Answer(text=argument.strip(), sentences=thoughts, paragraphs=paragraphs)
            seen = yield from observed(name, argument, page, settings.pages)
            page, paragraphs = seen.page, tuple(dict.fromkeys((*paragraphs, *seen.paragraphs)))
            # The last observations stay longest where not all fit.
            shown = seen.piece(settings.pages.observation_words, yields=settings.steps - number + 1)
            prompt = acted(prompt, number, thought, action).append(f"\nObservation {number}: ", shown, "\n")
    except LimitReached as reached:
        limit = reached.limit
    return Answer(text="", sentences=thoughts, paragraphs=paragraphs, limit=limit)


def opening(question: Question, shots: Shots) -> Prompt:
    """What may be done, the examples and the question."""
    examples = chosen_words(shots, OWN, "examples")
    words = worded(shots, OWN, "act", examples=examples, question=Asked(question.text))
    return Prompt(turns=(plain(*words, "\n"),))


def think_and_act(prompt: Prompt, number: int, settings: ReActSettings) -> Part[tuple[str, str]]:
    """The thought and the action of a step; where a text has no single action, the model is asked for that alone."""
    said = yield from write(prompt.append(f"Thought {number}:"), f"\nObservation {number}:", settings)
    match said.split(f"\nAction {number}: "):
        case [thought, action]:
            return thought, action
    thought = said.partition("\n")[0]
    action = yield from write(acted(prompt, number, thought), "\n", settings)
    return thought, action


def write(prompt: Prompt, stop: str, settings: ReActSettings) -> Part[str]:
    """What the model writes before a string, stripped."""
    step = Reason(
        prompt=prompt, max_tokens=settings.max_tokens, until="stop", stop=(stop,), temperature=settings.temperature
    )
    return (yield from text_of(step)).strip()


def acted(prompt: Prompt, number: int, thought: str, action: str | None = None) -> Prompt:
    """The prompt with a thought, and with its action or, where the model is to write that, its beginning."""
    thinking = prompt.append(f"Thought {number}: ", Written(thought), f"\nAction {number}:")
    return thinking if action is None else thinking.append(" ", Written(action))


def needs(_: ReActSettings) -> Needs:
    """A corpus whose pages have titles."""
    return Needs(words=OWN, corpus=True)


def most(question: Question, settings: ReActSettings) -> tuple[Most, ...]:  # noqa: ARG001
    """See `SystemSpec`: at worst the model is asked for each action alone, and no title is written as its page's."""
    steps = settings.steps
    words = words_in(OWN) + steps * (2 * settings.max_tokens + settings.pages.observation_words)
    return (
        Most(kind="reason", times=2 * steps, output=settings.max_tokens, words=words, form=AnswerForm.PROMPT),
        Most(kind="open", times=2 * steps),
        Most(kind="retrieve", times=steps),
    )


SPEC = SystemSpec(
    name="react",
    version=1,
    title="ReAct",
    paper="Yao et al., 2023, https://arxiv.org/abs/2210.03629",
    authors_words={"webthink_simple6": "examples", "webthink_simple3": "examples"},
    settings=ReActSettings,
    open=react,
    needs=needs,
    most=most,
)

SPECS = (SPEC,)
