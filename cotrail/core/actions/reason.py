"""Writing a sentence of a chain of thought."""

from cotrail.core.actions.kind import Action
from cotrail.core.generation import RULES, Until
from cotrail.core.prompts import Prompt


class Reason(Action, frozen=True, kw_only=True):
    """Write the next sentence of a chain of thought, or, with another `until`, all that is to come of it.

    splitter: what says where a sentence ends: cotrail's own `RULES`, or a pipeline of spaCy, as `NAME@VERSION`.
    sample: which of several chains this is, from 0, drawn by a seed of its own; None where there is but one.
    temperature: the run's where None.
    """

    prompt: Prompt
    max_tokens: int
    until: Until = "sentence"
    splitter: str = RULES
    sample: int | None = None
    temperature: float | None = None
