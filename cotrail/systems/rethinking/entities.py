"""Entities of a sentence, which a question may ask for: names, numbers, dates, quotations (appendix A.4).

The paper takes the entities of a trained model. These are found by their spelling: dates and numbers, text in double
quotation marks, and words that begin with a capital letter, with the small words between them.
"""

import re

from msgspec import Struct


class Entity(Struct, frozen=True):
    """A part of a sentence; `start` is the place of its first character."""

    text: str
    start: int

    def replaced(self, sentence: str, text: str) -> str:
        """The sentence with another text in place of the entity, capitalised at the beginning of the sentence."""
        replacement = text[:1].upper() + text[1:] if self.start == 0 else text
        return sentence[: self.start] + replacement + sentence[self.start + len(self.text) :]


_SMALL = (
    "A|An|The|This|That|These|Those|It|Its|He|His|She|Her|They|Their|There|We|Our|You|Your|I|My|One|Some|Many|Most|"
    "All|Both|Each|Every|No|Not|In|On|At|By|For|From|Of|To|With|As|And|Or|But|If|So|Thus|When|While|Where|Who|What|"
    "Which|Why|How|After|Before|During|Since|Until|Is|Are|Was|Were|Has|Have|Had|Do|Does|Did|Can|Could|Will|Would|"
    "However|Therefore|Although|Because|Also|According|Only"
)
"""Words that begin no name, though a sentence may begin with them."""

_UPPER = "".join(letter for letter in map(chr, range(0x530)) if letter.isupper())
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\.?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?!\d)"
_YEAR = r"(?:,? \d{3,4}\b)"
_FIGURES = r"\d+(?:,\d{3})*(?:\.\d+)?"
_INITIALS = rf"(?:[{_UPPER}]\.){{1,20}}+(?=\s\w)"
_NAME = rf"(?:{_INITIALS}|[{_UPPER}][\w&-]*+(?:['\u2019](?=\w)(?!s\b)[\w&-]*+)*)"
_BETWEEN = r"(?:of the|of|de la|de|del|da|di|du|la|le|van der|van|von|bin|al|the)"

_ENTITY = re.compile(
    "|".join(
        (
            rf"\b{_MONTH} {_DAY}{_YEAR}?",
            rf"\b{_DAY} (?:of )?{_MONTH}{_YEAR}?",
            rf"\b{_MONTH}{_YEAR}",
            rf"\b{_FIGURES} ?(?:BCE|BC|CE|AD)\b|\bAD {_FIGURES}",
            rf"[$€£]?\b{_FIGURES}(?: (?:hundred|thousand|million|billion|trillion)\b|%|(?:st|nd|rd|th|s)\b)?",
            r"\"[^\"]+\"|“[^”]{1,300}”",
            rf"(?<![\w\u2019'-])(?!(?:{_SMALL})(?![\w-])){_NAME}(?: (?:{_BETWEEN} )?{_NAME})*",
        )
    )
)
"""Alternatives by precedence: of two that begin at one place the upper one matches."""

MOST_ENTITIES = 100
"""The most entities of a sentence: each becomes a question, which shows the whole sentence."""


def entities(sentence: str) -> tuple[Entity, ...]:
    """The first entities of the sentence in their order, each text once, at its first place."""
    first: dict[str, Entity] = {}
    for match in _ENTITY.finditer(sentence):
        first.setdefault(match[0], Entity(match[0], match.start()))
        if len(first) == MOST_ENTITIES:
            break
    return tuple(first.values())
