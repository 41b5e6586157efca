r"""ReCall (Chen et al., 2025): reasoning with calls of functions between tags, learned by reinforcement.

The loop is that of the authors' code, `src/re_call/inference/re_call.py`.
"""

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.demonstrations import Shots
from cotrail.core.prompts import Asked, Prompt, system, user
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.systems.parts.answers import boxed
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.searching import SearchSettings
from cotrail.systems.spec import Needs, SystemSpec, description
from cotrail.systems.tool_agents.loop import PAIRED, Bounds, Drawn, Way, most_looped, schemas, tool_loop
from cotrail.systems.tool_agents.tools import SEARCH

OWN = own_words("recall")
TOOLS = {SEARCH.tool.name: SEARCH}


class ReCallSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ReCall."""

    search: SearchSettings = SearchSettings()
    turns: Positive = 5
    """Messages of the model's, at most."""

    max_tokens: Positive = 512
    """The most tokens of a message."""

    begins: str = "<think>"
    """With what each message begins; empty for models that aren't trained on it."""

    temperature: Temperature | None = 0.0
    """The temperature of messages."""


def recall(question: Question, shots: Shots, settings: ReCallSettings, way: Way = PAIRED) -> System:
    r"""Have the model think and call functions between tags until a message calls none; the answer is in `\boxed{}`."""
    shown = schemas([each.tool for each in TOOLS.values()])
    chat = Prompt(
        turns=(
            system(*worded(shots, OWN, "system", tools=shown)),
            user(*worded(shots, OWN, "question", question=Asked(question.text))),
        )
    )
    drawn = Drawn(max_tokens=settings.max_tokens, temperature=settings.temperature)
    bounds = Bounds(turns=settings.turns)
    way = replace(way, begins=settings.begins)
    looped = yield from tool_loop(chat, TOOLS, way, bounds, drawn, settings.search)
    # What the last message boxes counts also where it calls functions, as by the authors' code.
    text = boxed(looped.text) or ""
    return Answer(text=text, sentences=(looped.text,), paragraphs=looped.paragraphs, limit=looped.limit)


def run_needs(settings: ReCallSettings) -> Needs:
    """Conversations, whose last turn is continued where messages begin with something, and a corpus."""
    continued = {"continue"} if settings.begins else set()
    return Needs(words=OWN, corpus=True, capabilities=frozenset({"turns", *continued}))  # type: ignore[arg-type]


SPEC = SystemSpec(
    **description("recall"),
    settings=ReCallSettings,
    open=recall,
    needs=run_needs,
    step_bounds=lambda _, settings: most_looped(settings.turns, settings.max_tokens, settings.search),
)
SPECS = (SPEC,)
