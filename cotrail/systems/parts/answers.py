r"""Where models state their answers: behind a sentence's beginning, between tags, in `\boxed{}`."""

import math
import re
from itertools import accumulate

from cotrail.core.results import Generated

# Lines of a text that a model wrote, where each is a step of its chain of thought.


def lines(text: str) -> tuple[str, ...]:
    """The lines that aren't blank, stripped."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


# Plans: the sub-questions that a model lists, in numbered lines or in quotation marks.

_NUMBER = re.compile(r"(?:\d{1,2}[.):]|[-*])\s+")
"""The beginning of a line of a list."""


def sub_questions(text: str, most: int) -> tuple[str, ...]:
    """The first sub-questions of a plan, each once: its numbered lines or, without any, what is in quotation marks.

    A quotation that isn't closed was cut off, and is none.
    """
    lines = [line.strip() for line in text.splitlines()]
    listed = [line[mark.end() :] for line in lines if (mark := _NUMBER.match(line))]
    given = listed or text[: text.rfind('"') + 1].split('"')[1:-1:2]
    stripped = (each.strip().strip('"').strip() for each in given)
    return tuple(dict.fromkeys(each for each in stripped if each))[:most]


# How likely a part of a text was to the model that wrote it.


def mean_score(written: Generated, start: int, end: int) -> float | None:
    """The mean log probability of the tokens that have a part of the text from `start` to before `end`.

    None where there are no such tokens.
    """
    offset = max(0, written.raw.find(written.text))
    ends = accumulate(len(text) for text, _ in written.tokens)
    scores = [
        score
        for (text, score), behind in zip(written.tokens, ends, strict=True)
        if behind > start + offset and behind - len(text) < end + offset
    ]
    return math.fsum(scores) / len(scores) if scores else None


BOXED = "\\boxed{"


def behind(text: str, *beginnings: str) -> str | None:
    """What follows the last of these beginnings in its line, without a full stop; None where none of them stands.

    Case doesn't count.
    """
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text
    places = [(lowered.rfind(each.lower()), len(each)) for each in beginnings]
    place, length = max(places, default=(-1, 0))
    if place < 0:
        return None
    return text[place + length :].strip().partition("\n")[0].strip().removesuffix(".").rstrip()


def between(text: str, opening: str, closing: str) -> str | None:
    """What is in the last pair of these tags, or behind an opening one that isn't closed; None without any."""
    _, is_open, inside = text.rpartition(opening)
    return inside.partition(closing)[0].strip() if is_open else None


def first_between(text: str, opening: str, closing: str) -> str | None:
    """What is in the first pair of these tags, or behind an opening one that isn't closed; None without any."""
    _, is_open, behind = text.partition(opening)
    return behind.partition(closing)[0].strip() if is_open else None


def boxed(text: str) -> str | None:
    r"""What is in the last `\boxed{}`, whose brackets may hold others; None where there is none that is closed."""
    start = text.rfind(BOXED)
    if start < 0:
        return None
    depth, inside = 1, start + len(BOXED)
    for place in range(inside, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[inside:place].strip()
    return None


def behind_answer_is(text: str) -> str | None:
    """What follows the last "answer is" of a text in its line, without a full stop; None where it has none.

    For texts whose authors released no rule, by models that write as they like; `stated_answer` is IRCoT's, to the
    letter, by which its chains end.
    """
    return behind(text, "answer is:", "answer is")


def stated_or_all(text: str) -> str:
    """What stands behind the last "answer is" of a text, or, where it has none, all of the text without a full stop."""
    answer = behind_answer_is(text)
    return text.strip().removesuffix(".").rstrip() if answer is None else answer
