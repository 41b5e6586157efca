"""Direct Retrieval: the best paragraphs for the question, then one prompt (Search-in-the-Chain, section 4.1)."""

from msgspec import Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Read
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, user
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Answer, System
from cotrail.systems.parts import prompting
from cotrail.systems.parts.answers import stated_or_all
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.searching import SearchSettings, found, shown
from cotrail.systems.parts.steps import last_text
from cotrail.systems.spec import Needs, SystemSpec, always, description

OWN = own_words("direct_retrieval")

PARAGRAPH = "Paragraph {number}: {title}\n{text}\n\n"


class DirectRetrievalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Direct Retrieval."""

    search: SearchSettings = SearchSettings()

    max_tokens: Positive = 256
    """The most tokens of the answer."""

    temperature: Temperature | None = None
    """The temperature; the run's unless given."""


def direct_retrieval(question: Question, shots: Shots, settings: DirectRetrievalSettings) -> System:
    """Search with the question, show what was found, and take what the model says."""
    paragraphs: tuple[Paragraph, ...] = ()
    with Limited() as end:
        paragraphs = yield from found(question.text, settings.search)
    pieces = shown(prompting.shown(question, paragraphs), PARAGRAPH, settings.search)
    words = worded(shots, OWN, "prompt", paragraphs=pieces, question=Asked(question.text))
    prompt = Prompt(turns=(user(*words),))
    reading = Read(prompt=prompt, max_tokens=settings.max_tokens, until="end", temperature=settings.temperature)
    said = yield from last_text(reading)
    return Answer(text=stated_or_all(said), paragraphs=paragraphs, limit=end.limit)


def step_bounds(question: Question, settings: DirectRetrievalSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    words = settings.search.most_words + words_in(OWN)
    reading = StepBound(kind="read", times=1, output=settings.max_tokens, words=words, form=AnswerForm.PROMPT)
    return (StepBound(kind="retrieve", times=1), reading)


SPEC = SystemSpec(
    **description("direct-retrieval"),
    settings=DirectRetrievalSettings,
    open=direct_retrieval,
    needs=always(Needs(words=OWN, corpus=True, capabilities=frozenset({"turns"}))),
    step_bounds=step_bounds,
)
SPECS = (SPEC,)
