"""How a model thinks before it writes its text, as its table says, and segments of prompts as text."""

import hashlib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from cotrail.common.structs import canonical, unusual
from cotrail.core.generation import HandsBack, ThoughtsKind

# The marks that families of models write around their thoughts and around their answers.

LEFT_OVER = "<|end|>"
"""What gpt-oss writes between its thought and the mark that closes it here."""


class Marks(Struct, frozen=True):
    """What stands before and behind a thought; nests: whether a thought may hold others between marks of their own."""

    opening: str
    closing: str
    nests: bool = True

    @property
    def written(self) -> str:
        """The closing mark with what a model writes around it."""
        return f"{LEFT_OVER}{self.closing}" if self.closing.startswith("<|start|>") else f"\n{self.closing}\n\n"


_FAMILIES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("marks.toml").read_text("utf-8"))

MARKS = msgspec.convert(_FAMILIES["marks"], tuple[Marks, ...])
"""The marks of published models."""

FRAMES = tuple(_FAMILIES["frames"])
"""What models write around their answers, and servers without a parser for the family pass on."""

_BEFORE_QUOTED = frozenset(" \t\"'`\u201c\u2018«([")
_BEHIND_QUOTED = frozenset(" \t\"'`\u201d\u2019»)].,;:!?")


@cache
def mark_pattern(marks: tuple[Marks, ...]) -> re.Pattern[str]:
    """Matches any of these marks."""
    return any_of(tuple(text for each in marks for text in (each.opening, each.closing)))


@cache
def any_of(texts: tuple[str, ...]) -> re.Pattern[str]:
    """Matches any of these texts; of two that begin alike the former."""
    return re.compile("|".join(map(re.escape, texts)))


@cache
def beginnings(texts: tuple[str, ...]) -> frozenset[str]:
    """All that these texts may begin with, but for themselves."""
    return frozenset(text[:length] for text in texts for length in range(1, len(text)))


def pending(read: str, begun: Collection[str]) -> int:
    """How many characters at the end of a text may begin a mark; begun: the beginnings of all marks."""
    longest = max(map(len, begun), default=0)
    return next((length for length in range(min(len(read), longest), 0, -1) if read[-length:] in begun), 0)


def begins_inside(prompt: str, marks: Sequence[Marks] = MARKS) -> bool:
    """Return whether a prompt, as it is rendered, ends in an opening mark."""
    end = prompt.rstrip()
    return any(end.endswith(each.opening) for each in marks)


def is_quoted(before: str, behind: str) -> bool:
    """Return whether a mark between these characters stands among words of its line, as one that is spoken of does.

    A mark that ends a thought stands behind its last word, or on a line of its own.
    """
    return before in _BEFORE_QUOTED and behind in _BEHIND_QUOTED


def shown_thought(text: str) -> tuple[str, Literal["tags", "inside"]] | None:
    """The mark by which a whole text shows that it begins with a thought, and where that opened; None if none does."""
    for marks in MARKS:
        if text.lstrip().startswith(marks.opening):
            return marks.opening, "tags"
        opened = text.find(marks.opening)
        before = text if opened < 0 else text[:opened]
        for match in any_of((marks.closing,)).finditer(before):
            if not is_quoted(text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]):
                return marks.closing, "inside"
    return None


class Unframed:
    """Takes a text piece by piece, and returns it without the frames that models write around their answers.

    White space between the first frame and the text is layout. stop: what the text is to end before; frames among
    these stay, to be found.
    """

    def __init__(self, stop: Collection[str] = ()) -> None:
        frames = tuple(frame for frame in FRAMES if frame not in stop)
        self._pattern = any_of(frames)
        self._beginnings = beginnings(frames)
        self._rest = ""
        self._met = self._begun = False

    def feed(self, piece: str) -> str:
        """Takes the next piece; returns what of it, and of what was held back, is text."""
        read, place, text = self._rest + piece, 0, list[str]()
        for match in self._pattern.finditer(read):
            text.append(self._take(read[place : match.start()]))
            self._met, place = True, match.end()
        certain = len(read) - pending(read[place:], self._beginnings)
        text.append(self._take(read[place:certain]))
        self._rest = read[certain:]
        return "".join(text)

    def end(self) -> str:
        """The rest of the text, once nothing more comes."""
        rest, self._rest = self._rest, ""
        return self._take(rest)

    def _take(self, piece: str) -> str:
        if self._met and not self._begun:
            piece = piece.lstrip()
        self._begun = self._begun or bool(piece.strip())
        return piece


def without_frames(text: str) -> str:
    """A whole text without the frames in it."""
    return any_of(FRAMES).sub("", text)


Thinks = Literal["field", "tags", "inside", "hidden", "no"]
"""Where a model's thoughts are. `field`: in fields of their own. `tags`: in its text, between marks. `inside`: so too,
where the prompt ends in the opening mark, so that the model writes only the closing one. `hidden`: nowhere, they are
only counted. `no`: it doesn't think."""


class Thinking(Struct, frozen=True, kw_only=True):
    """How a model thinks.

    thinks: None where nothing is known; an in-process model's template and vocabulary then tell, and thoughts in the
        text of a server's model are an error.
    thought_tokens: the most tokens of a thought, in addition to those of each step's text.
    template: variables of the model's chat template, such as `enable_thinking`.
    hands_back: which thoughts later prompts have.
    """

    thinks: Thinks | None = None
    thought_tokens: int = 0
    template: dict[str, Any] = {}
    hands_back: HandsBack = "calls"

    @property
    def may_think(self) -> bool:
        """Return whether the model thinks, as far as it is known."""
        return self.thinks not in (None, "no")

    def takes_back(self, *, has_calls: bool) -> bool:
        """Return whether later prompts have the thought of a turn; has_calls: whether tools were called in it."""
        return self.hands_back == "all" or (self.hands_back == "calls" and has_calls)

    def added_to(self, digest: str) -> str:
        """The digest of a model with what decides how it thinks; the same digest where nothing of it is set."""
        set_ = unusual(self, *self.__struct_fields__)
        return hashlib.sha256(digest.encode() + canonical(set_)).hexdigest() if set_ else digest


NO_THINKING = Thinking()
"""What a table says that says nothing of thoughts."""


class Thought(Struct, frozen=True, kw_only=True):
    """What a model thought; see `thoughts`, `thoughts_are` and `carried` of `Generated`."""

    text: str = ""
    kind: ThoughtsKind = ""
    carried: str = ""


NO_THOUGHT = Thought()


# Segments of a prompt as text, and the control tokens between them.


class Segment(Struct, frozen=True):
    """A part of a prompt as text; plain: whether it reads like a control token and is none."""

    text: str
    plain: bool = False


def control_pattern(controls: Iterable[str]) -> re.Pattern[str]:
    """Finds the texts of any of these control tokens, the longest one that begins at a place; of none, nothing."""
    longest_first = sorted(filter(None, controls), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def spans_of(controls: re.Pattern[str]) -> Callable[[str], list[tuple[int, int]]]:
    """Where a text reads like a control token."""
    return lambda text: [match.span() for match in controls.finditer(text)]


def divided_at(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[str, bool]]:
    """The parts of a text at these spans and between them, each with whether it is at one; any may be empty."""
    place = 0
    for start, end in spans:
        yield text[place:start], False
        yield text[start:end], True
        place = end
    yield text[place:], False
