"""Supporting facts and predictions of chains of thought by the rules of the paper (Rethinking with Retrieval, 4.1)."""

import re
from collections.abc import Iterable
from itertools import takewhile

from cotrail.common.sentence_boundaries import segments
from cotrail.core.answer_extraction import stated_answer
from cotrail.faithfulness.tasks import VERDICTS, Task

# The sentences of a chain of thought, split by the library sentencex.

_WRAP = re.compile(
    r"(?:(?<=answer is)|(?<=answer is:))[^\S\n]*+\n\s*+(?!Q:|Question:)"
    r"|(?<![^\S\n])[^\S\n]*+\n[^\S\n]*+(?=[a-z])"
)
"""A line break within a sentence."""

_QUESTION = re.compile(r"\A\s*+(Q|Question):")
_MARKER = re.compile(r"^(\d{1,2}[.)]|[-*•])(\s+|$)")
_BREAK = re.compile(r"(?<!\s)[^\S\n]*+\n\s*+")


def sentences(chain: str) -> tuple[str, ...]:
    """The chain's sentences, line by line, without list markers, up to where the chain ends.

    A line continues the one before if it begins with a lower-case letter, or if that one ends in "answer is". The chain
    ends where the model continues with a question of its own, at a line that begins with "Q:" or "Question:".
    """
    lines = takewhile(lambda line: not _QUESTION.match(line), _WRAP.sub(" ", chain).splitlines())
    return tuple(sentence for line in lines for sentence in _sentences_of_line(line))


def all_sentences(text: str) -> tuple[str, ...]:
    """The sentences of the whole text, across its lines, with spaces for the line breaks within them."""
    return tuple(_BREAK.sub(" ", each.strip()) for each in segments(text) if each.strip())


def _sentences_of_line(line: str) -> list[str]:
    sentences: list[list[str]] = []
    for part in segments(line):
        text = _MARKER.sub("", part.strip())
        if any(map(str.isalpha, text)):
            sentences.append([text])
        elif text and sentences:
            # sentencex cuts "approx. 3,776." in two, so that a part without a letter belongs to the sentence before.
            # It is joined by a space whatever stood between the two: recorded runs replay with these very sentences.
            sentences[-1].append(text)
    return list(map(" ".join, sentences))


_CONCLUDING = ("thus", "therefore", "so ", "so,")
_ANSWERING = ("no,", "yes,", "no.", "yes.")

_ALONE = (
    r"(?=(?!['\u2019-]\w)[^\w\s]|\s*$|\s+[^\w\s]"
    r"|\s+(?:although|and|as|because|but|due|even|for|given|if|since|so|though|unless|when|while)\b)"
)
"""What may follow a verdict; in "no one knows" and "no longer", the no isn't one."""

_WORDS = {task: "|".join(verdicts) for task, verdicts in VERDICTS.items() if verdicts}
_STATED = {
    task: re.compile(rf"\A.*\banswer is\W++(?:(?:probably|most likely)\W++)?({words})\b{_ALONE}", re.IGNORECASE)
    for task, words in _WORDS.items()
}
# A number behind the mark makes it no verdict: "No. 10 is a house."
_OPENING = {task: re.compile(rf"({words})([,.!]|$)(?!\s*\d)", re.IGNORECASE) for task, words in _WORDS.items()}


def facts(chain: str, task: Task) -> tuple[str, ...]:
    """The chain's supporting facts: its sentences without those that conclude.

    Ignoring case, a concluding sentence begins with "thus", "therefore" or "so", or holds "answer is"; in a commonsense
    chain it may also begin with yes or no before a comma or a full stop, or be that word alone. The released code has
    these rules too, but neither "answer is" for commonsense chains nor "so" before a comma.
    """
    return tuple(sentence for sentence in sentences(chain) if not _concludes(sentence.lower(), task))


def prediction(chain: str, task: Task) -> str:
    """The last answer that the chain states; empty if it states none.

    Temporal: the text of `stated_answer`. Otherwise the task's verdict in lower case: what follows "answer is",
    optionally behind "probably" or "most likely"; where no sentence says that, the verdict that a sentence begins with.
    The verdict must be the whole statement, reasons aside.
    """
    statements = sentences(chain)
    if task == "temporal":
        return _last(stated_answer(sentence) for sentence in statements)
    return _verdict(_STATED[task], statements) or _verdict(_OPENING[task], statements)


def _concludes(sentence: str, task: Task) -> bool:
    if sentence.startswith(_CONCLUDING) or "answer is" in sentence:
        return True
    return task == "commonsense" and (sentence.startswith(_ANSWERING) or sentence in VERDICTS[task])


def _verdict(pattern: re.Pattern[str], sentences: Iterable[str]) -> str:
    matches = (pattern.match(sentence) for sentence in sentences)
    return _last(match and match[1].lower() for match in matches)


def _last(stated: Iterable[str | None]) -> str:
    return next((each for each in reversed(tuple(stated)) if each), "")
