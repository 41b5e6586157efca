"""Direct prompting: the question alone (the first row of table 1 in Search-in-the-Chain; Xu et al., 2023)."""

from msgspec import Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Read
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, user
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.systems.parts.answers import stated_or_all
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.rules import StepBound, words_in
from cotrail.systems.parts.steps import last_text
from cotrail.systems.spec import Needs, SystemSpec, always, description

OWN = own_words("direct")


class DirectSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Direct prompting."""

    max_tokens: Positive = 256
    """The most tokens of the answer."""

    temperature: Temperature | None = None
    """The temperature; the run's unless given."""


def direct(question: Question, shots: Shots, settings: DirectSettings) -> System:
    """Ask the question and take what the model says."""
    prompt = Prompt(turns=(user(*worded(shots, OWN, "prompt", question=Asked(question.text))),))
    reading = Read(prompt=prompt, max_tokens=settings.max_tokens, until="end", temperature=settings.temperature)
    said = yield from last_text(reading)
    return Answer(text=stated_or_all(said))


SPEC = SystemSpec(
    **description("direct"),
    settings=DirectSettings,
    open=direct,
    needs=always(Needs(words=OWN, capabilities=frozenset({"turns"}))),
    step_bounds=lambda _, settings: (
        StepBound(kind="read", times=1, output=settings.max_tokens, words=words_in(OWN), form=AnswerForm.PROMPT),
    ),
)
SPECS = (SPEC,)
