"""Plans: the sub-questions that a model lists, in numbered lines or in quotation marks."""

import re

_NUMBER = re.compile(r"(?:\d{1,2}[.):]|[-*])\s+")
"""The beginning of a line of a list."""


def sub_questions(text: str, most: int) -> tuple[str, ...]:
    """The first sub-questions of a plan, each once: its numbered lines or, without any, what stands in quotation marks.

    A quotation that isn't closed was cut off, and is none.
    """
    lines = [line.strip() for line in text.splitlines()]
    listed = [line[mark.end() :] for line in lines if (mark := _NUMBER.match(line))]
    given = listed or text[: text.rfind('"') + 1].split('"')[1:-1:2]
    stripped = (each.strip().strip('"').strip() for each in given)
    return tuple(dict.fromkeys(each for each in stripped if each))[:most]
