"""Whether an answer is a published one in another form."""

from collections import Counter
from collections.abc import Iterator, Sequence

from cotrail.common.printable_text import cut
from cotrail.data.datasets.scoring import Scoring
from cotrail.evaluation.causes.plain_words import is_number, plain, stands_in
from cotrail.evaluation.metrics.drop import published_spans

LEAST_SHARE = 2 / 3
"""The share of a published answer's words that an answer within it has at least: F1 is 0.8 then."""

LONGEST = 80
"""Characters of an answer in a sentence about it."""

AFFIRMING = frozenset(("yes", "true", "supports", "supported", "correct"))
DENYING = frozenset(("no", "false", "refutes", "refuted", "incorrect"))
"""Labels that mean the same, in plain words."""

_AGAINST_BEFORE = frozenset(("not", "never", "neither", "nor", "or", "either", "than"))
_AGAINST_BEHIND = frozenset(("or",))
_BESIDE = 10
"""Characters on either side in which these are looked for: more than any of them has."""


def is_label(scoring: Scoring, answer: str) -> bool:
    """Return whether a published answer is a label, which may stand in any sentence without being meant."""
    return scoring.rule == "label" or plain(answer) in AFFIRMING | DENYING


def same_but_for_form(scoring: Scoring, question: str, answer: str, published: Sequence[str]) -> str:
    """How an answer differs from a published one in nothing but its form, in words; empty where it does otherwise.

    A label is meant by the first word alone, or by one that means the same. Any other answer is the same in plain words
    in any order, or contains a published one as whole words (all spans of one with several), or is two thirds of one at
    least. It isn't contained where "not", "or", "than" and their like stand beside it, where it is a number among
    others, and, if the question names it, anywhere but at the beginning.
    """
    said, asked = plain(answer), plain(question)
    if not said:
        return ""
    for each in published:
        if is_label(scoring, each):
            if _means(said, plain(each)):
                return f"the answer '{cut(answer, LONGEST)}' means the label '{each}'"
        elif difference := _difference(said, [plain(span) for span in published_spans(each)], asked):
            return f"the answer '{cut(answer, LONGEST)}' {difference} the published '{each}'"
    return ""


def _means(said: str, label: str) -> bool:
    first, alike = said.split()[0], next((same for same in (AFFIRMING, DENYING) if label in same), frozenset((label,)))
    opposite = {"yes", "no", "true", "false"} - alike
    begins = first in alike or f"{said} ".startswith(f"{label} ")
    return begins and opposite.isdisjoint(said.split()[1:])


def _difference(said: str, spans: Sequence[str], asked: str) -> str:
    if not all(spans):
        return ""
    if Counter(said.split()) == Counter(" ".join(spans).split()):
        return "has the words of"
    if all(_is_contained(span, said, asked) for span in spans):
        return "contains"
    [whole, *others] = spans
    if not others and stands_in(said, whole) and len(said.split()) >= LEAST_SHARE * len(whole.split()):
        return "has most words of"
    return ""


def _is_contained(span: str, said: str, asked: str) -> bool:
    words = span.split()
    if all(map(is_number, words)) and {word for word in said.split() if word[0].isdigit()} - set(words):
        return False
    if stands_in(span, asked):
        return f"{said} ".startswith(f"{span} ") and _is_meant(span, said, 0)
    return any(_is_meant(span, said, place) for place in _places(span, said))


def _places(span: str, said: str) -> Iterator[int]:
    """Where the words of a span begin in a text."""
    padded, place = f" {said} ", -1
    while (place := padded.find(f" {span} ", place + 1)) >= 0:
        yield place


def _is_meant(span: str, said: str, place: int) -> bool:
    """Return whether no word beside a span says that something else is meant."""
    end = place + len(span)
    before, behind = said[max(place - _BESIDE, 0) : place].split()[-1:], said[end : end + _BESIDE].split()[:1]
    return _AGAINST_BEFORE.isdisjoint(before) and _AGAINST_BEHIND.isdisjoint(behind)
