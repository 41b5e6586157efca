"""Whether a text means what it contains: names have their ends, clauses their negations, and lists are guesses."""

from collections.abc import Iterator
from itertools import islice

from cotrail.engines.knowledge.words import STOP_WORDS
from cotrail.evaluation.causes import names_in_texts
from cotrail.evaluation.causes.plain_words import UNITS, Reading, is_number, listed, plain, read, stands_in

MOST_BESIDE, MOST_IN_LIST = 40, 60
"""How many words of a clause, and of a list of answers, are looked at."""

_NEGATIONS = frozenset(listed("negations"))
_ALL = frozenset(listed("all"))
"""Behind these, "but" is "except"."""

_BESIDES = frozenset(listed("besides"))
"""Before a text, these say that it is something else."""

NO_DETAIL = _NEGATIONS | names_in_texts.TELLING
"""Words without which an answer is another one."""

_KINDS = names_in_texts.HARMLESS.union(listed("kinds"))
"""What may be "of" an answer and is that answer: "the town of Marl"."""

_ITEM_MARKS = frozenset(",;/|\n•")
_MAYBE = frozenset(("could", "may", "might", "maybe", "perhaps", "possibly", "either", "candidates", "options"))
_COPULAS = frozenset("is are was were be been called named".split())  # noqa: SIM905
_STEM = 5
"""Letters that words of one family have in common at least: designer, designed."""


def means(text: str, span: str, scene: names_in_texts.Scene, also: frozenset[str] = frozenset()) -> bool:
    """Return whether a text has a span's words and means them, at one place at least.

    It doesn't where they are a part of another name, as that is found in the text or in the paragraphs; where their
    clause is negated; where they say what else it has to do with ("near Marl", "the sister of Ada Lund"); and where
    they are one of several guesses. If the question names the span, only the beginning of the text counts.

    also: words that may stand in one list with them.
    """
    reading, words = read(text), tuple(plain(span).split())
    found = list(islice(names_in_texts.places(reading, words), names_in_texts.MOST_PLACES))
    if stands_in(" ".join(words), plain(scene.question)):
        found = found[:1] if found[:1] == [0] else []
    names = scene.names(words) if found else frozenset[tuple[str, ...]]()
    is_name = any(each.isupper() or each.isdigit() for each in span)
    for first in found:
        end = first + len(words)
        whole = names_in_texts.whole_name(reading, first, end, scene, names)
        if (
            whole is not None
            and not _is_denied(reading, *whole)
            and (is_name or not _is_compound(reading, first, end, scene))
            and not _is_of_another(reading, *whole, scene)
            and not _is_guess(reading, *whole, scene, also)
        ):
            return True
    return False


def states(sentence: str, span: str, scene: names_in_texts.Scene, also: frozenset[str] = frozenset()) -> bool:
    """Return whether a sentence says that a span is what was asked for, and doesn't just mention it.

    The span is all of it, or ends its phrase ("American", not "an American bridge") and stands behind "is" and its
    like, or in one sentence with a word of the question that is no name.
    """
    reading, words = read(sentence), plain(span).split()
    if not means(sentence, span, scene, also):
        return False
    if len(reading.words) == len(words):
        return True
    relations = {word[:_STEM] for word in scene.asked & {plain(each) for each in scene.small} - STOP_WORDS}
    related = any(word.plain[:_STEM] in relations and word.plain not in words for word in reading.words)
    for first in islice(names_in_texts.places(reading, words), names_in_texts.MOST_PLACES):
        end = first + len(words)
        ends = (
            end == len(reading.words)
            or names_in_texts.ends_clause(reading, end)
            or reading.words[end].plain in STOP_WORDS | UNITS
        )
        if ends and (related or (first and reading.words[first - 1].plain in _COPULAS)):
            return True
    return False


def _is_denied(reading: Reading, first: int, end: int) -> bool:
    for number in range(first - 1, max(first - MOST_BESIDE, 0) - 1, -1):
        if names_in_texts.ends_clause(reading, number + 1):
            break
        word = reading.words[number].plain
        if word == "but":
            if number and reading.words[number - 1].plain in _ALL:
                return True
            break
        if _is_negation(reading, number):
            return True
    for number in range(end, min(end + MOST_BESIDE, len(reading.words))):
        if names_in_texts.ends_clause(reading, number) or reading.words[number].plain == "but":
            break
        denies = reading.words[number].plain != "not" or (number > end and reading.words[number - 1].plain != "and")
        if denies and _is_negation(reading, number):
            return True
    return end < len(reading.words) and "?" in reading.gap(end)


def _is_negation(reading: Reading, number: int) -> bool:
    return reading.words[number].plain in _NEGATIONS or reading.raw(number).casefold().endswith(("n't", "n’t"))  # noqa: RUF001


def _is_compound(reading: Reading, first: int, end: int, scene: names_in_texts.Scene) -> bool:
    """Return whether a common noun is a part of another one: "table tennis", "copper wire"."""

    def says_more(number: int) -> bool:
        word = reading.words[number].plain
        return not (word in STOP_WORDS | _KINDS | UNITS | scene.asked or is_number(word) or word.endswith("ly"))

    if end < len(reading.words) and reading.gap(end).strip() in {"", "-"} and says_more(end):
        return True
    begins = first == 1 or (first > 1 and reading.gap(first - 1).strip().casefold() in {"a", "an", "the"})
    return begins and reading.gap(first).strip() in {"", "-"} and says_more(first - 1)


def _is_of_another(reading: Reading, first: int, end: int, scene: names_in_texts.Scene) -> bool:
    """Return whether the words before a text say that something else is meant, which only has to do with it."""
    words = [word.plain for word in reading.words]
    if not first or names_in_texts.ends_clause(reading, first):
        return _is_told_of(reading, first, end, scene)
    before = words[first - 1]
    if before in _BESIDES - scene.asked or words[max(first - 2, 0) : first] == ["up", "to"]:
        return True
    if before == "from" and first > 1 and words[first - 2] in {"far", "away"}:
        return True
    if before == "from" and words[end : end + 1] == ["to"] and not all(map(is_number, words[first:end])):
        return True
    if before == "of" and first > 1 and not all(map(is_number, words[first:end])):
        of = words[first - 2]
        if not (of in _KINDS | scene.asked or of.endswith("ed") or is_number(of)):
            return True
    return _is_told_of(reading, first, end, scene)


def _is_told_of(reading: Reading, first: int, end: int, scene: names_in_texts.Scene) -> bool:
    """Return whether a text is said of another name, with which the answer begins: "Grett, where Ada Lund was born"."""
    head = next(
        (n for n in range(1, min(first, names_in_texts.MOST_IN_NAME) + 1) if names_in_texts.ends_clause(reading, n)), 0
    )
    words = tuple(word.plain for word in reading.words)
    if not head or not all(reading.is_capital(number) for number in range(head)) or reading.text.isupper():
        return False
    if {*words[:head]} <= STOP_WORDS | names_in_texts.INTRODUCING | names_in_texts.HARMLESS | scene.asked:
        return False
    bracketed = "(" in reading.gap(first) and (end == len(words) or ")" in reading.gap(end))
    adjacent = head == first and scene.has(" ".join(words[:end]))
    return not (bracketed or adjacent or words[first - 1] in {"as", "called", "named"})


def _is_guess(reading: Reading, first: int, end: int, scene: names_in_texts.Scene, also: frozenset[str]) -> bool:
    """Return whether words are one of several guesses, joined to another by "or", "and", "/" or in a list."""
    words = [word.plain for word in reading.words]

    def is_another(number: int) -> bool:
        return 0 <= number < len(words) and words[number] not in STOP_WORDS | also

    if first and words[first - 1] in {"and", "or"} and is_another(first - 2):
        return True
    if end < len(words) and (words[end] == "or" or (words[end] == "and" and is_another(end + 1))):
        return True
    if any(mark in reading.gap(number) for number in (first, end) if 0 < number < len(words) for mark in "/|"):
        return not (words[max(first - 1, 0)] in also or words[min(end, len(words) - 1)] in also)
    return _is_listed(reading, first, end, scene, also)


def _is_listed(reading: Reading, first: int, end: int, scene: names_in_texts.Scene, also: frozenset[str]) -> bool:
    """Return whether words are an item of a list of guesses, as "Marl, Kolm" is where the paragraphs know of a Kolm."""
    words = tuple(_plain(reading, range(len(reading.words))))
    if len(words) > MOST_IN_LIST:
        return False
    numbers = {word for n, word in enumerate(words[:-1], 1) if reading.gap(n)[:1] in {".", ")"}}
    if {"1", "2"} <= numbers:
        return True
    items = [_said(reading, item) for item in _items(reading)]
    own = next((item for item in items if (item.start, item.stop) == (first, end)), None)
    others = [item for item in items if item != own and not _is_aside(tuple(_plain(reading, item)), also)]
    if own is None or not others or any(not _is_short_item(reading, item) for item in others):
        return False
    if "who" not in scene.asked and scene.has(" ".join(words[items[0].start :])):
        return False
    [other, *more] = others
    if more or "\n" in reading.text.strip():
        return True
    if not reading.is_capital(other.start):
        return reading.gap(other.start).strip(" ,;") == ""
    if own == items[0] and own.start and _MAYBE.isdisjoint(words[: own.start]):
        return "who" in scene.asked  # else "born in Warsaw, Poland"
    known = "who" in scene.asked or scene.has(" ".join(_plain(reading, other)))
    return other.start < first or known


def _said(reading: Reading, item: range) -> range:
    """An item without what introduces it, such as "possibly", and "she was born in" at the beginning of the list."""
    start = item.start
    if not start or ":" in reading.gap(start):
        start = next((n + 1 for n in reversed(item[:-1]) if reading.words[n].plain in STOP_WORDS), start)
    for word in _plain(reading, range(start, item.stop - 1)):
        if word not in names_in_texts.INTRODUCING and word != "maybe" and not word.endswith("ly"):
            break
        start += 1
    return range(start, item.stop)


def _is_aside(words: tuple[str, ...], also: frozenset[str]) -> bool:
    return (also | names_in_texts.INTRODUCING).issuperset(words) or all(map(is_number, words))


def _is_short_item(reading: Reading, item: range) -> bool:
    return len(item) < names_in_texts.MOST_IN_NAME and STOP_WORDS.isdisjoint(_plain(reading, item))


def _items(reading: Reading) -> list[range]:
    """The items of a list that a text may be, behind the last colon."""
    starts = [n for n in range(len(reading.words)) if n == 0 or ":" in reading.gap(n)][-1:]
    items, start = list[range](), starts[0] if starts else 0
    for number in range(start, len(reading.words) + 1):
        last = number == len(reading.words)
        joined = not last and reading.words[number].plain in {"and", "or"}
        if last or joined or not _ITEM_MARKS.isdisjoint(reading.gap(number)):
            if start < number:
                items.append(range(start, number))
            start = number + joined
    return items


def _plain(reading: Reading, item: range) -> Iterator[str]:
    return (reading.words[number].plain for number in item)
