"""Format violations: how a model's texts depart from the form that its prompts ask for."""

from typing import Literal

from msgspec import Struct

What = Literal[
    "tag",
    "number",
    "text outside",
    "no query",
    "no answer",
    "second answer",
    "answer to an unsolved query",
    "cut",
    "further example",
    "nothing",
    "too many queries",
    "no final content",
    "no marks",
    "unknown mark",
]
"""What a format violation is: a `tag` that isn't in the strict form, or a `number` that is missing or doesn't
follow; `text outside` of queries, answers and final content; a tag with `no query` or a query with `no answer`; a
text `cut` off by the token limit; a `further example` behind the chain; a message with `nothing` to read, or more
queries than are looked at. Of the final content: that there is none, or no mark in it, or a mark of a pair that there
isn't."""

MOST_VIOLATIONS = 20
"""How many violations of a round are recorded."""

MOST_CHARACTERS = 80
"""How much of a text a violation quotes."""


class FormatViolation(Struct, frozen=True, kw_only=True):
    """What a model's text has in another form than it was asked for; text: the beginning of the place."""

    round: int
    what: What
    text: str


def quoted(text: str) -> str:
    """The beginning of a text, as a violation quotes it; an ellipsis stands for the rest."""
    whole = text.strip()
    return whole if len(whole) <= MOST_CHARACTERS else f"{whole[: MOST_CHARACTERS - 1]}…"
