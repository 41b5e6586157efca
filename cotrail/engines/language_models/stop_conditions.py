"""Stop conditions: where a generation ends, and what is kept of its text."""

import re
from collections.abc import Callable

from cotrail.common.sentence_boundaries import SentenceStop, first_sentence
from cotrail.core.calls import Call, split_calls
from cotrail.core.generation import Ended, Until, before_stop


class GrowingText:
    """A text to which pieces are added, in time linear in the text: `text += piece` copies an attribute each time."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.characters = 0

    def add(self, piece: str) -> None:
        """Adds the next piece."""
        self._pieces.append(piece)
        self.characters += len(piece)

    @property
    def text(self) -> str:
        """All that was written so far."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]


STOP_STRINGS: dict[Until, tuple[str, ...]] = {
    "sentence": (),
    "line": ("\n",),
    "chain": ("\nQ:", "\nWikipedia Title:"),
    "end": (),
    "stop": (),
}
"""Stop strings that a server can apply by itself. The other conditions depend on the whole text or on what stands
before."""

_BREAK = r"(?<!\s)[^\S\n]*+\n"
"""The first line break of a white space, so that each white space is looked at once."""

_OPENINGS = ("Q:", "Question:", "Wikipedia Title:")
_OPENING = rf"(?:\A|{_BREAK})\s*+(?:{'|'.join(_OPENINGS)})"
_NEXT = re.compile(
    # A line above a further hypothesis is the table that the hypothesis is about, unless the line ends the chain.
    rf"{_BREAK}[^\S\n]*+\n\s*+(?![^\n]*answer is)\S[^\n]*+\n\s*+Question:|{_OPENING}"
)
"""The beginning of a further demonstration, in any of the prompts' layouts."""

_NEXT_LINE = re.compile(_OPENING)
"""The line that such a beginning ends with."""

_LONGEST_OPENING = max(map(len, _OPENINGS))


def kept(text: str, until: Until, stop: tuple[str, ...] = ()) -> str:
    """The part of a generated text that the step asked for; may be empty."""
    text, _ = before_stop(text, stop)
    match until:
        case "sentence":
            return first_sentence(text)
        case "line":
            return text.split("\n", 1)[0].strip()
        case "chain":
            return _NEXT.split(text, maxsplit=1)[0].strip()
        case "end":
            return text.strip()
        case "stop":
            return text


def kept_beside_calls(text: str, until: Until, stop: tuple[str, ...]) -> tuple[str, tuple[Call, ...]]:
    """What the step asked for outside of the calls of tools in a generated text, and the calls."""
    outside, calls = split_calls(before_stop(text, stop)[0])
    return kept(outside, until), calls


def why_ended(text: str, until: Until, stop: tuple[str, ...], otherwise: Ended) -> tuple[Ended, str]:
    """Why a generation ended whose whole text this is, and before which stop string if it was one.

    otherwise: the reason where the text has neither a stop string nor all that `until` asks for.
    """
    before, stop_string = before_stop(text, stop)
    if _completeness(until)(before):
        return "until", ""
    return ("stop", stop_string) if stop_string else (otherwise, "")


def stop_condition(until: Until, stop: tuple[str, ...] = ()) -> Callable[[str], bool]:
    """A function that takes the text piece by piece and returns True once the part that was asked for is complete."""
    complete = _completeness(until)
    if not stop:
        return complete
    stopped = _StopStrings(stop).feed
    return lambda piece: stopped(piece) | complete(piece)


def _completeness(until: Until) -> Callable[[str], bool]:
    match until:
        case "sentence":
            return SentenceStop().feed
        case "line":
            return lambda piece: "\n" in piece
        case "chain":
            return _ChainStop().feed
        case "end" | "stop":
            return lambda _: False


class _StopStrings:
    """Stop condition of strings, which may begin in one piece and end in another."""

    def __init__(self, stop: tuple[str, ...]) -> None:
        self._stop = stop
        self._longest = max(map(len, stop))
        self._end = ""

    def feed(self, piece: str) -> bool:
        text = self._end + piece
        self._end = text[-self._longest :]
        return any(each in text for each in self._stop)


class _ChainStop:
    """Stop condition of a whole chain: the beginning of a further demonstration behind it."""

    def __init__(self) -> None:
        self._line = ""

    def feed(self, piece: str) -> bool:
        text = self._line + piece
        # Whatever follows these characters of a line, it is no beginning any more.
        self._line = text.rpartition("\n")[2].lstrip()[:_LONGEST_OPENING]
        return _NEXT_LINE.search(text) is not None
