"""The causes of a wrong answer, in their order of precedence."""

from enum import StrEnum

from msgspec import Struct


class Cause(StrEnum):
    """Why an answer is wrong; of several that apply to a question, the first in this order is its cause.

    What was reached excuses what was missed on the way: an answer that is right but for its form, and a chain that
    states the right answer, come first. Then comes what cut the way off, a limit; then the first break on the way from
    the search over the prompt to the chain.
    """

    NO_ANSWER = "no answer"
    """The question failed, is blocked or was cancelled."""
    FORM = "answer form only"
    """The answer is a published one in another form."""
    READER = "reader wrong"
    """The chain states a published answer, and the answer given is another."""
    LIMIT = "limit"
    """A limit ended the question before its chain stated an answer."""
    NEVER_FOUND = "gold never found"
    """A gold paragraph was in no search result and in no prompt."""
    NOT_SHOWN = "found but not shown"
    """A gold paragraph was found, and what the model was shown lacks it, or lacks its part with the answer."""
    CONTRADICTED = "contradicted"
    """The chain says something that a gold paragraph contradicts which was shown."""
    NOT_USED = "shown but not used"
    """A gold paragraph was shown, and nothing in the chain or the answer is from it."""
    UNEXPLAINED = "unexplained"
    """None of these applies."""

    @property
    def slug(self) -> str:
        """The cause as a name in pages."""
        return self.value.replace(" ", "-")


class Sign(Struct, frozen=True, kw_only=True):
    """A cause that applies to a question, and the facts behind it in a sentence."""

    cause: Cause
    facts: str


class Explanation(Struct, frozen=True, kw_only=True):
    """Why an answer is wrong; signs: all that apply, in the order of precedence, one at least."""

    signs: tuple[Sign, ...]

    @property
    def cause(self) -> Cause:
        """The cause: that of the first sign."""
        return self.signs[0].cause

    @property
    def facts(self) -> str:
        """The facts behind the cause."""
        return self.signs[0].facts
