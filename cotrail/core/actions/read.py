"""Writing an answer."""

from cotrail.core.actions.kind import Action
from cotrail.core.generation import Until
from cotrail.core.prompts import Prompt


class Read(Action, frozen=True, kw_only=True):
    """Write a question's answer from its paragraphs; `temperature` is the run's where None."""

    prompt: Prompt
    max_tokens: int
    until: Until = "line"
    temperature: float | None = None
