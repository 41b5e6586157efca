"""Whether an answer is a published one in another form."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from cotrail.common.printable_text import cut
from cotrail.common.sentence_boundaries import sentences
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.causes.meant_answers import NO_DETAIL, means, states
from cotrail.evaluation.causes.names_in_texts import HARMLESS, Scene
from cotrail.evaluation.causes.plain_words import (
    LISTS,
    MONTHS,
    UNITS,
    Reading,
    american,
    is_number,
    listed,
    plain,
    read,
)
from cotrail.evaluation.metrics.answer_scores import published_spans

LEAST_SHARE = 2 / 3
"""The share of a published answer's words that an answer within it has at least: F1 is 0.8 then."""

LONGEST = 80
"""Characters of an answer in a sentence about it."""

MOST_WORDS = 60
"""Words of an answer that may be the same in other words; a longer one can only contain it."""

AFFIRMING = frozenset(("yes", "true", "supports", "supported", "correct", "yeah", "yep"))
DENYING = frozenset(("no", "false", "refutes", "refuted", "incorrect", "nope"))
"""Labels that mean the same, in plain words."""

_SAME: Sequence[Sequence[str]] = LISTS["same_names"]
"""What has several names everywhere."""

_INTRODUCTION = frozenset(listed("introduction"))
_SAYS_LITTLE = frozenset(listed("says_little"))
_BEFORE_RANGES, _WITHIN_RANGES = frozenset(("from", "between")), frozenset(("and", "to", "until"))
"""Words that say no more of numbers than a dash: "from 1914 to 1918"."""

_ORDINALS = listed("ordinals")
_NUMBERED = {word: str(number) for number, word in enumerate(_ORDINALS, start=1)} | {
    numeral: str(number)
    for number, numeral in enumerate("ii iii iv v vi vii viii ix x".split(), start=2)  # noqa: SIM905
}
_UNITS = frozenset(map(american, UNITS))
_MONEY = frozenset(("dollar", "euro", "pound"))
_LIST_MARKS = frozenset(",;/&\n")


def is_label(scoring: Scoring, answer: str) -> bool:
    """Return whether a published answer is a label, which may stand in any sentence without being meant."""
    return scoring.rule == "label" or plain(answer) in AFFIRMING | DENYING


def same_but_for_form(scoring: Scoring, scene: Scene, answer: str, published: Sequence[str]) -> str:
    """How an answer differs from a published one in nothing but its form, in words; empty where it does otherwise.

    A label is meant by the first word alone, or by one that means the same. Any other answer is the same in other
    words: in another order, spelling or abbreviation; or it contains a published one and means it (`means`), with all
    spans of one with several; or it is two thirds of one at least, and lacks nothing that tells it from others.
    """
    if not plain(answer):
        return ""
    for each in published:
        if is_label(scoring, each):
            if _means_label(plain(answer), plain(each)):
                return f"the answer '{cut(answer, LONGEST)}' means the label '{each}'"
        elif difference := _difference(answer, published_spans(each), scene):
            return f"the answer '{cut(answer, LONGEST)}' {difference} the published '{each}'"
    return ""


def _means_label(said: str, label: str) -> bool:
    words = said.split()
    begin = next((number for number, word in enumerate(words) if word not in _INTRODUCTION - {label}), 0)
    first, alike = words[begin], next((same for same in (AFFIRMING, DENYING) if label in same), frozenset((label,)))
    opposite = {"yes", "no", "true", "false"} - alike
    begins = first in alike or f"{' '.join(words[begin:])} ".startswith(f"{label} ")
    return begins and opposite.isdisjoint(words[begin + 1 :])


def _difference(answer: str, spans: Sequence[str], scene: Scene) -> str:
    if not all(map(plain, spans)):
        return ""
    also = frozenset(word for span in spans for word in plain(span).split()) if len(spans) > 1 else frozenset[str]()
    longer = len(read(answer).words) > sum(len(read(span).words) for span in spans)
    if longer and all(_is_contained(answer, span, scene, also) for span in spans):
        return "contains"
    if len(read(answer).words) <= MOST_WORDS and (_is_same(answer, spans) or _is_full_name(answer, spans, scene)):
        return "has the words of"
    if _is_surname(answer, spans, scene):
        return "is the last name of"
    return "has most words of" if len(spans) == 1 and _is_most_of(answer, spans[0], scene) else ""


def _is_same(answer: str, spans: Sequence[str]) -> bool:
    """Return whether the words are the same, in another order where that says nothing."""
    published = " and ".join(spans)
    given, wanted = _core(read(answer)), _core(read(published))
    spoken = ({" ".join(_core(read(name.title()))) for name in same} for same in _SAME)
    if "".join(given) == "".join(wanted) or any({" ".join(given), " ".join(wanted)} <= same for same in spoken):
        return True
    if _stands_for(answer, published) or _stands_for(published, answer) or _has_initials(given, wanted):
        return True
    if Counter(given) == Counter(wanted) and _named(given) == _named(wanted):
        return True
    if Counter(given) != Counter(wanted):
        return _items(answer) == _items(published)
    return (
        _items(answer) == _items(published) or _is_turned(answer, given, wanted) or _is_turned(published, wanted, given)
    )


def _named(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in HARMLESS]


def _is_full_name(answer: str, spans: Sequence[str], scene: Scene) -> bool:
    """Return whether an answer is the name with which the page begins whose title is published."""
    given, words = plain(answer), plain(spans[0])
    if len(spans) > 1 or not {*words.split()} <= {*given.split()}:
        return False
    reading, [first, *_, last] = read(answer), (*words.split(), *words.split())
    names = all(reading.is_capital(number) and len(word.plain) > 1 for number, word in enumerate(reading.words))
    ends = first != last and len(words.split()) == 2 and given.startswith(f"{first} ") and given.endswith(f" {last}")
    return scene.is_called(words, given) or (names and ends and len(reading.words) == 3 and not scene.has(given))


def _is_surname(answer: str, spans: Sequence[str], scene: Scene) -> bool:
    """Return whether an answer is the last name of the only person of that name whom the paragraphs know."""
    given, wanted = [word for word in plain(answer).split() if word not in HARMLESS], plain(spans[0]).split()
    if len(given) != 1 or len(spans) > 1 or not 1 < len(wanted) <= 4 or given[0] != wanted[-1] or is_number(given[0]):
        return False
    if "who" not in scene.asked and HARMLESS.isdisjoint({*plain(answer).split(), *scene.asked}):
        return False
    return given[0] not in NO_DETAIL and all(
        name[-1:] == (given[0],) and {*name} <= {*wanted} for name in scene.names(given)
    )


def _core(reading: Reading) -> list[str]:
    """The words that say something, each in one spelling, and dates in one order."""
    words = [_one_form(word.plain, is_name=reading.is_capital(number)) for number, word in enumerate(reading.words)]
    numbers = [number for number, word in enumerate(words) if word[0].isdigit()]
    first, last = (numbers[0], numbers[-1]) if len(numbers) > 1 else (len(words), -1)
    kept = [
        word
        for number, word in enumerate(words)
        if word not in _SAYS_LITTLE
        and not (number < first < last and word in _BEFORE_RANGES)
        and not (first < number < last and word in _WITHIN_RANGES)
    ]
    for number in range(len(kept) - 1):
        if (kept[number] in _MONEY and is_number(kept[number + 1])) or _is_day(kept[number], kept[number + 1]):
            kept[number : number + 2] = reversed(kept[number : number + 2])
    return kept or words


def _one_form(word: str, *, is_name: bool) -> str:
    """A plain word as all its forms are compared: a common noun in the singular."""
    if word in _NUMBERED:
        return _NUMBERED[word]
    plural = (
        word.isalpha()
        and not is_name
        and word.endswith("s")
        and not word.endswith(("ss", "us", "is"))
        and len(word) > len("its")
    )
    return american(word.removesuffix("s") if plural else word)


def _is_day(month: str, day: str) -> bool:
    return month in MONTHS and day.isdigit() and len(day) <= len("31")


def _stands_for(short: str, long: str) -> bool:
    """Return whether a text is an abbreviation by the initials of a name: "U.S.", "the WHO"."""
    reading, name = read(short), read(long)
    letters = "".join(reading.raw(n) for n, word in enumerate(reading.words) if word.plain not in _SAYS_LITTLE).replace(
        ".", ""
    )
    if not (1 < len(letters) < MOST_WORDS and letters.isupper() and letters.isalpha() and len(name.words) > 1):
        return False
    capitals = "".join(word.plain[0] for n, word in enumerate(name.words) if name.is_capital(n))
    return letters.casefold() in {capitals, "".join(word.plain[0] for word in name.words)}


def _has_initials(given: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether a name has initials, or lacks those, where the other one has more: "John F. Kennedy"."""
    if min(len(given), len(wanted)) < 2 or given[-1] != wanted[-1]:
        return False
    for one, other in ((given, wanted), (wanted, given)):
        if [word for word in one if len(word) > 1] == list(other) and all(len(word) > 1 for word in other):
            return not any(word[0].isdigit() for word in one)
    pairs = list(zip(given, wanted, strict=False))
    return len(given) == len(wanted) and all(
        a == b or (min(len(a), len(b)) == 1 and a[0] == b[0] and a.isalpha()) for a, b in pairs
    )


def _items(text: str) -> Counter[str]:
    """The items of a text as a list, each once."""
    reading, items, item = read(text), list[str](), list[str]()
    for number, word in enumerate(reading.words):
        if word.plain == "and" or not _LIST_MARKS.isdisjoint(reading.gap(number)):
            items.append(" ".join(item))
            item = []
        if word.plain not in _SAYS_LITTLE | {"and", "both"}:
            item.append(_NUMBERED.get(word.plain, american(word.plain)))
    return Counter(filter(None, (*items, " ".join(item))))


def _is_turned(text: str, words: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether a text is another one in an order of its own: "Lund, Ada", "University of Oxford", and dates."""
    reading = read(text)
    if all(is_number(word) for word in words):
        return any(word in MONTHS for word in words)
    turns = ("," in reading.gap(n) or word.plain == "of" for n, word in enumerate(reading.words) if n)
    places = [number for number, turn in enumerate(turns, start=1) if turn]
    return len(places) == 1 and any(
        [*words[n:], *words[:n]] == list(other) for n in range(1, min(len(words), MOST_WORDS))
    )


def _is_contained(answer: str, span: str, scene: Scene, also: frozenset[str]) -> bool:
    words = _core(read(span))
    if all(map(is_number, words)) and _has_other_numbers(answer, words):
        return False
    return any(_says(answer, each, scene, also) for each in _names(span)) or _has_date(answer, words)


def _says(answer: str, span: str, scene: Scene, also: frozenset[str]) -> bool:
    """Return whether an answer means a span; of one in several sentences, one has to say that it is what was asked."""
    if not means(answer, span, scene, also):
        return False
    first_sentences = list(islice(sentences(answer), MOST_WORDS))
    return len(first_sentences) == 1 or any(states(each, span, scene, also) for each in first_sentences)


def _names(span: str) -> Iterator[str]:
    """A published answer as it is, without what is in brackets behind it, and as it is also called."""
    yield span
    yield span.partition(" (")[0]
    for same in _SAME:
        if plain(span) in same:
            yield from (name.title() for name in same if name != "us")


def _has_other_numbers(answer: str, words: Sequence[str]) -> bool:
    """Return whether an answer has numbers other than these, and not as the day of a date with their year or month."""
    said = _core(read(answer))
    others = {word for word in said if word[0].isdigit()} - set(words)
    if not others:
        return False
    dated = {said[n - 2] for n in range(2, len(said)) if said[n - 1] in MONTHS and said[n] == words[-1]}
    return not (others <= dated and len(words[-1]) == len("1901"))


def _has_date(answer: str, words: Sequence[str]) -> bool:
    """Return whether an answer has a date in another order of its parts."""
    if not any(word in MONTHS for word in words) or not all(map(is_number, words)):
        return False
    said = " ".join(_core(read(answer)))
    return f" {' '.join(words)} " in f" {said} " and means(said, " ".join(words), Scene(""))


def _is_most_of(answer: str, published: str, scene: Scene) -> bool:
    """Return whether an answer is most of a published one: a name without its first ones, a number without its unit."""
    given, wanted = _core(read(answer)), _core(read(published))
    if not 0 < len(given) < len(wanted) <= MOST_WORDS or not (left := _left_out(given, wanted)):
        return False
    words = {wanted[number] for number in left}
    if all(map(is_number, given)) and left[0] == len(given) and words <= _UNITS:
        return True
    if any(len(each) == 1 for each in words) and any(len(each) == 1 for each in given):
        return False
    reading = read(published)
    named = {american(word.plain) for number, word in enumerate(reading.words) if reading.is_capital(number)}
    if any(map(is_number, words)) or not words.isdisjoint(NO_DETAIL):
        return False
    if wanted[-1] in words and wanted[-1] in named - HARMLESS:
        return False
    return words <= HARMLESS | (scene.asked & scene.small) or len(given) >= LEAST_SHARE * len(wanted)


def _left_out(given: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The numbers of the words that one lacks of the other: at the beginning, at the end, or between its own."""
    for first in range(len(wanted) - len(given) + 1):
        if list(wanted[first : first + len(given)]) == list(given):
            return [*range(first), *range(first + len(given), len(wanted))]
    for cut_at in range(1, len(given)):
        if list(given) == [*wanted[:cut_at], *wanted[cut_at - len(given) :]]:
            return list(range(cut_at, len(wanted) - len(given) + cut_at))
    return []
