"""Templates that turn dated statements into sentences."""

import re

from msgspec import Struct

from cotrail.engines.knowledge.words import capitalized

EVENT_TEMPLATES = {
    569: "{} was born in {}.",
    570: "{} died in {}.",
    571: "{} was founded in {}.",
    575: "{} was invented or discovered in {}.",
    576: "{} was dissolved in {}.",
    577: "{} was released in {}.",
    580: "{} began in {}.",
    582: "{} ended in {}.",
    585: "{} took place in {}.",
}
"""Templates of properties whose value is a time, by their numbers."""

RELATION_VERBS = {
    26: "was married to",
    27: "was a citizen of",
    39: "held the position of",
    54: "played for",
    69: "was educated at",
    102: "was a member of",
    108: "worked for",
    166: "received",
    463: "was a member of",
    551: "lived in",
    1411: "was nominated for",
}
"""Verbs that connect an item with the value of a property, by the properties' numbers."""

_PREPOSITION = "(?:at|by|for|from|in|of|on|to|with)"
_LIKE_A_VERB = re.compile(rf"\A(?:\w+ed {_PREPOSITION}\b.*|.* {_PREPOSITION})$")


class DatedStatement(Struct, frozen=True):
    """A dated statement with the labels of its entities; times in words."""

    item: int
    property: int
    number: int
    subject: str
    label: str
    is_time: bool
    value: str
    point: str | None = None
    start: str | None = None
    end: str | None = None


def sentence(statement: DatedStatement) -> str:
    """The statement as a sentence: "Tim Pawlenty held the position of Governor of Minnesota from 2003 to 2011."."""
    if statement.is_time:
        return capitalized(_happened(statement))
    return capitalized(f"{_stated(statement)} {_when(statement)}.")


def _happened(statement: DatedStatement) -> str:
    if template := EVENT_TEMPLATES.get(statement.property):
        return template.format(statement.subject, statement.value)
    return f"the {statement.label} of {statement.subject} was in {statement.value}."


def _stated(statement: DatedStatement) -> str:
    label = statement.label
    if verb := RELATION_VERBS.get(statement.property):
        return f"{statement.subject} {verb} {statement.value}"
    if _LIKE_A_VERB.fullmatch(label):
        return f"{statement.subject} was {label} {statement.value}"
    return f"the {label} of {statement.subject} was {statement.value}"


def _when(statement: DatedStatement) -> str:
    match statement.start, statement.end:
        case None, None:
            return f"in {statement.point}"
        case start, None:
            return f"since {start}"
        case None, end:
            return f"until {end}"
        case start, end if start == end:
            return f"in {start}"
    return f"from {statement.start} to {statement.end}"
