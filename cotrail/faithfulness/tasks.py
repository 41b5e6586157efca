"""What the tasks of Rethinking with Retrieval make of a chain of thought: its supporting facts and its prediction.

A chain's sentences are those of the library sentencex, line by line, without the markers of a list. A line goes on the
one before where it begins with a small letter, or where that one ends in "answer is". The chain ends where the model
goes on with a question of its own, at a line that begins with "Q:" or "Question:".
"""

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Literal

from sentencex import segment

from cotrail.common.answer_normalization import normalized
from cotrail.core.answers import stated_answer
from cotrail.faithfulness.scores import Function

Task = Literal["commonsense", "temporal", "tabular"]
"""The tasks of sections 4.2 to 4.4: yes or no (StrategyQA), a text (TempQuestions), true or false (INFOTABS)."""

TASK_OF: dict[str, Task] = {
    "strategyqa": "commonsense",
    "strategyqa-facts": "commonsense",
    "tempquestions": "temporal",
    "infotabs": "tabular",
}
"""Each dataset's task."""

FUNCTIONS: dict[Task, Function] = {"commonsense": 1, "temporal": 2, "tabular": 1}
"""Each task's faithfulness function (appendix A.2)."""

VERDICTS: dict[Task, tuple[str, ...]] = {"commonsense": ("yes", "no"), "temporal": (), "tabular": ("true", "false")}
"""What there is to predict; nothing where a prediction is a text."""

_WRAP = re.compile(r"(?:(?<=answer is)|(?<=answer is:))\s*\n\s*+(?!Q:|Question:)|[^\S\n]*\n[^\S\n]*(?=[a-z])")
_QUESTION = re.compile(r"\s*(Q|Question):")
_MARKER = re.compile(r"^(\d{1,2}[.)]|[-*•])(\s+|$)")

_CONCLUDING = ("thus", "therefore", "so ", "so,")
_ANSWERING = ("no,", "yes,", "no.", "yes.")

_ALONE = (
    r"(?=(?!['\u2019-]\w)[^\w\s]|\s*$|\s+[^\w\s]"
    r"|\s+(?:although|and|as|because|but|due|even|for|given|if|since|so|though|unless|when|while)\b)"
)
"""Behind a verdict that is one: in "no one knows" and "no longer", the no is none."""


def sentences(chain: str) -> tuple[str, ...]:
    """The chain's sentences up to where it ends."""
    lines = takewhile(lambda line: not _QUESTION.match(line), _WRAP.sub(" ", chain).splitlines())
    return tuple(sentence for line in lines for sentence in _sentences_of_line(line))


def all_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a whole text, whatever its lines, with spaces for the line breaks within them."""
    return tuple(re.sub(r"\s*\n\s*", " ", each.strip()) for each in segment("en", text) if each.strip())


def facts(chain: str, task: Task) -> tuple[str, ...]:
    """The chain's supporting facts: its sentences without those that conclude.

    Whatever the case of the letters, a concluding sentence begins with "thus", "therefore" or "so", or holds "answer
    is"; of a commonsense chain also one that begins with yes or no before a comma or a full stop, or is but that word.
    The released code has these rules too, but not "answer is" for commonsense chains, nor "so" before a comma.
    """
    return tuple(sentence for sentence in sentences(chain) if not _concludes(sentence.lower(), task))


def prediction(chain: str, task: Task, *, whole: bool = True) -> str:
    """What the chain states, the last time that it states something; empty where it never does.

    Temporal: the text of `stated_answer`. Otherwise the task's verdict in lower case: what follows "answer is", if need
    be behind "probably" or "most likely"; where no sentence says that, the verdict that a sentence begins with.
    whole: the verdict must be all that is stated, reasons aside; else any word may follow it.
    """
    told = sentences(chain)
    if task == "temporal":
        return _last(stated_answer(sentence) for sentence in told)
    words = "|".join(VERDICTS[task])
    stated = re.compile(
        rf".*\banswer is\W+(?:(?:probably|most likely)\W+)?({words})\b{_ALONE if whole else ''}", re.IGNORECASE
    )
    # A number behind the mark is no verdict's: "No. 10 is a house."
    opening = re.compile(rf"({words})([,.!]|$)(?!\s*\d)", re.IGNORECASE)
    return _verdict(stated, told) or _verdict(opening, told)


def same(prediction: str, task: Task) -> str:
    """The key under which predictions count as one; empty for the empty one alone.

    Temporal predictions are compared as SQuAD does, without case, punctuation and articles.
    """
    return (task == "temporal" and normalized(prediction)) or prediction


def unified(predictions: Iterable[str], task: Task) -> tuple[str, ...]:
    """Each prediction in the form that came first of those that count as one with it."""
    first: dict[str, str] = {}
    return tuple(first.setdefault(same(prediction, task), prediction) for prediction in predictions)


def _sentences_of_line(line: str) -> list[str]:
    """What holds no letter belongs to the sentence before: sentencex cuts "approx. 3,776." in two."""
    sentences: list[str] = []
    for part in segment("en", line):
        text = _MARKER.sub("", part.strip())
        if any(map(str.isalpha, text)):
            sentences.append(text)
        elif text and sentences:
            sentences[-1] += f" {text}"
    return sentences


def _concludes(sentence: str, task: Task) -> bool:
    if sentence.startswith(_CONCLUDING) or "answer is" in sentence:
        return True
    return task == "commonsense" and (sentence.startswith(_ANSWERING) or sentence in VERDICTS[task])


def _verdict(pattern: re.Pattern[str], sentences: Iterable[str]) -> str:
    matches = (pattern.match(sentence) for sentence in sentences)
    return _last(match and match[1].lower() for match in matches)


def _last(stated: Iterable[str | None]) -> str:
    return next((each for each in reversed(tuple(stated)) if each), "")
