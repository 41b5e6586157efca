"""Thoughts of a model, told apart from its text by the marks that it writes around them."""

import re
from collections.abc import Sequence
from enum import Enum, auto
from functools import cache

from msgspec import Struct

from cotrail.engines.language_models.growing_text import GrowingText


class Marks(Struct, frozen=True):
    """What stands before and behind a thought."""

    opening: str
    closing: str


MARKS = (
    Marks("<think>", "</think>"),  # DeepSeek-R1, Qwen3, GLM and most others
    Marks("◁think▷", "◁/think▷"),  # Kimi
    Marks("[THINK]", "[/THINK]"),  # Magistral
    Marks("<thinking>", "</thinking>"),
    Marks("<thought>", "</thought>"),  # Gemma and Gemini's OpenAI layer
    Marks("<seed:think>", "</seed:think>"),  # Seed-OSS
    Marks("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    Marks("<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>final<|message|>"),  # gpt-oss
)
"""The marks of published models."""

_LEFT_OVER = "<|end|>"
"""What gpt-oss writes between its thought and the mark that closes it here."""


@cache
def mark_pattern(marks: tuple[Marks, ...]) -> re.Pattern[str]:
    """Matches any of these marks."""
    return re.compile("|".join(re.escape(text) for each in marks for text in (each.opening, each.closing)))


def begins_inside(prompt: str, marks: Sequence[Marks] = MARKS) -> bool:
    """Return whether a prompt, as it is rendered, ends in an opening mark."""
    end = prompt.rstrip()
    return any(end.endswith(each.opening) for each in marks)


class _State(Enum):
    START = auto()
    """Only white space so far, or since a thought: a thought may open."""
    WAITING = auto()
    """Text that has no opening mark before it, but maybe a closing one behind it."""
    THOUGHT = auto()
    TEXT = auto()
    QUOTED = auto()
    """Behind an opening mark within the text: a thought if it is closed, otherwise words that the model quotes."""


class ThoughtSplitter:
    """Takes what a model writes piece by piece, and returns what of it is text for certain.

    A thought opens at the beginning, or where another one has just been closed; marks within it nest. Within the text,
    a mark opens a thought only if that is closed again: otherwise it is quoted, from a paragraph for instance. White
    space around thoughts is layout. Linear in what is written.

    marks: those of the model, all that are known by default.
    inside: whether the prompt ends in the opening mark, so that the model begins with a thought.
    waits: whether the model may have begun with a thought though it writes no opening mark. The text then counts as
        such only once the model ends, as everything before a closing mark is a thought.
    """

    def __init__(self, marks: Sequence[Marks] = MARKS, *, inside: bool = False, waits: bool = False) -> None:
        self._by_opening = {each.opening: each for each in marks}
        self._by_closing = {each.closing: each for each in marks}
        self._pattern = mark_pattern(tuple(marks))
        self._longest = max(map(len, [*self._by_opening, *self._by_closing]))
        self._marks: Marks | None = marks[0] if inside else None
        self._any_closing = inside
        self._state = _State.THOUGHT if inside else _State.START
        self._depth = 1
        self._waits = waits
        self._rest = ""
        self._held = GrowingText()
        self._thoughts = GrowingText()
        self._after_close: list[str] = []

    @property
    def thoughts(self) -> str:
        """What was thought so far."""
        return self._thoughts.text.replace(_LEFT_OVER, "").strip()

    @property
    def met(self) -> bool:
        """Return whether it met any mark, in a text or around a thought."""
        return self._marks is not None

    @property
    def characters(self) -> int:
        """How much it holds."""
        return self._thoughts.characters + self._held.characters

    @property
    def thinks(self) -> bool:
        """Return whether a thought is open."""
        return self._state is _State.THOUGHT

    def feed(self, piece: str) -> str:
        """Takes the next piece; returns what of it, and of pieces before it, is text."""
        read = self._rest + piece
        text, place = [], 0
        for match in self._pattern.finditer(read):
            text += [self._take(read[place : match.start()]), self._meet(match[0])]
            place = match.end()
        certain = max(place, len(read) - self._pending(read[place:]))
        text.append(self._take(read[place:certain]))
        self._rest = read[certain:]
        return "".join(text)

    def end(self, *, cut: bool = False) -> str:
        """The rest of the text, once the model has ended; cut: whether it reached its most tokens instead."""
        text, self._rest = self._take(self._rest), ""
        held = self._held.text
        self._held = GrowingText()
        match self._state:
            case _State.WAITING:
                return text + held
            case _State.QUOTED if cut:
                self._thoughts.add(held)
            case _State.QUOTED:
                return text + held
            case _State.THOUGHT if self._after_close:
                return text + self._text_behind_the_last_close()
        return text

    def _pending(self, read: str) -> int:
        """How many characters at the end may begin a mark."""
        for length in range(min(len(read), self._longest - 1), 0, -1):
            end = read[-length:]
            if any(mark.startswith(end) for mark in (*self._by_opening, *self._by_closing)):
                return length
        return 0

    def _take(self, piece: str) -> str:
        """Takes what stands between marks."""
        match self._state:
            case _State.START if piece.strip():
                self._state = _State.WAITING if self._waits else _State.TEXT
                return self._take(self._layout(piece))
            case _State.START:
                if not self._thoughts.characters:
                    self._held.add(piece)
            case _State.THOUGHT:
                self._think(piece)
            case _State.TEXT:
                return piece
            case _:
                self._held.add(piece)
        return ""

    def _layout(self, piece: str) -> str:
        """The first piece of the text, with the white space before it unless that stands behind a thought."""
        before, self._held = self._held.text, GrowingText()
        return piece.lstrip() if self._any_thought else before + piece

    @property
    def _any_thought(self) -> bool:
        return self._marks is not None

    def _think(self, piece: str) -> None:
        self._thoughts.add(piece)
        if self._after_close:
            self._after_close.append(piece)

    def _meet(self, mark: str) -> str:
        """Takes a mark; returns the text that it makes certain."""
        return self._open(mark) if mark in self._by_opening else self._close(mark)

    def _open(self, mark: str) -> str:
        match self._state:
            case _State.START:
                if self._any_thought:
                    self._thoughts.add("\n\n")
                self._held, self._marks = GrowingText(), self._by_opening[mark]
                self._state, self._depth, self._after_close = _State.THOUGHT, 1, []
            case _State.THOUGHT:
                self._depth += self._marks == self._by_opening[mark]
                self._think(mark)
            case _State.TEXT:
                self._state, self._marks = _State.QUOTED, self._by_opening[mark]
                self._held.add(mark)
            case _:
                self._held.add(mark)
        return ""

    def _close(self, mark: str) -> str:
        marks = self._by_closing[mark]
        match self._state:
            case _State.START | _State.WAITING if not self._any_thought:
                # It opened in the prompt, or nowhere.
                self._thoughts.add(self._held.text)
                self._held, self._marks, self._state = GrowingText(), marks, _State.START
            case _State.THOUGHT if self._closes(marks):
                self._depth -= 1
                if self._depth:
                    self._after_close = [mark]
                    self._thoughts.add(mark)
                else:
                    self._state = _State.START
            case _State.THOUGHT:
                self._think(mark)
            case _State.QUOTED if self._marks == marks:
                self._thoughts.add(f"\n\n{self._held.text.removeprefix(marks.opening)}")
                self._held, self._state = GrowingText(), _State.TEXT
            case _State.TEXT:
                return mark
            case _State.START:
                pass
            case _:
                self._held.add(mark)
        return ""

    def _closes(self, marks: Marks) -> bool:
        if self._any_closing:
            self._marks, self._any_closing = marks, False
        return self._marks == marks

    def _text_behind_the_last_close(self) -> str:
        """The text of a model that opened more thoughts than it closed: what stands behind the last closing mark."""
        behind = "".join(self._after_close[1:])
        self._thoughts = _without_end(self._thoughts, len("".join(self._after_close)))
        self._after_close = []
        return behind.lstrip()


def _without_end(text: GrowingText, length: int) -> GrowingText:
    left = GrowingText()
    left.add(text.text[: text.characters - length])
    return left
