"""Thoughts of a model, told apart from its text by the marks that it writes around them."""

import re
from collections.abc import Sequence
from enum import Enum, auto
from functools import cache

from msgspec import Struct

from cotrail.engines.language_models.growing_text import GrowingText

_LEFT_OVER = "<|end|>"
"""What gpt-oss writes between its thought and the mark that closes it here."""


class Marks(Struct, frozen=True):
    """What stands before and behind a thought."""

    opening: str
    closing: str

    @property
    def written(self) -> str:
        """The closing mark with what a model writes around it."""
        return f"{_LEFT_OVER}{self.closing}" if self.closing.startswith("<|start|>") else f"\n{self.closing}\n\n"


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


MOST_CLOSINGS = 3
"""How often a thought is closed for a model that thinks too long; a model that then opens another one is stopped."""

MOST_LAYOUT = 8
"""How many pieces of white space behind a thought don't count as text."""


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
    ends: whether the model ends its texts by itself, as it does in a conversation: without a mark, one that reached its
        most tokens and those of a thought is a thought, if it waits.
    """

    def __init__(
        self, marks: Sequence[Marks] = MARKS, *, inside: bool = False, waits: bool = False, ends: bool = False
    ) -> None:
        self._by_opening = {each.opening: each for each in marks}
        self._by_closing = {each.closing: each for each in marks}
        self._pattern = mark_pattern(tuple(marks))
        self._longest = max(map(len, [*self._by_opening, *self._by_closing]))
        self._marks: Marks | None = marks[0] if inside else None
        self._any_closing = inside
        self._state = _State.THOUGHT if inside else _State.START
        self._depth = 1
        self._waits = waits
        self._ends = ends
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

    @property
    def is_undecided(self) -> bool:
        """Return whether the end of what was written may begin a mark."""
        return bool(self._rest)

    @property
    def closing(self) -> str:
        """What closes all thoughts that are open; empty where none is."""
        if not self.thinks or self._marks is None:
            return ""
        return self._marks.closing * (self._depth - 1) + self._marks.written

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
            case _State.WAITING if cut and self._ends:
                self._thoughts.add(held)
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
                self._state = _State.WAITING if self._waits and not self._any_thought else _State.TEXT
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
            case _State.TEXT | _State.WAITING:
                # Whoever writes opening marks hasn't begun with a thought that has none.
                text, self._held = self._held.text, GrowingText()
                self._state, self._marks = _State.QUOTED, self._by_opening[mark]
                self._held.add(mark)
                return text
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


class ThinkingText:
    """Takes what a model writes piece by piece, and tells its thoughts from its text.

    splitter: None for a model that doesn't think, all of whose pieces are text.
    most: the most tokens of its thoughts; thought_tokens: their number so far, with the marks around them.
    text_tokens: the number of the others.
    """

    def __init__(self, splitter: ThoughtSplitter | None = None, most: int = 0) -> None:
        self._splitter = splitter
        self._most = most
        self._closings = 0
        self._layout = 0
        self._text = GrowingText()
        self.thought_tokens = 0
        self.text_tokens = 0

    @property
    def text(self) -> str:
        """The text so far."""
        return self._text.text

    @property
    def thoughts(self) -> str:
        """The thoughts so far."""
        return self._splitter.thoughts if self._splitter else ""

    @property
    def has_text(self) -> bool:
        """Return whether any of the text was written."""
        return self._text.characters > 0

    @property
    def thinks(self) -> bool:
        """Return whether a thought is open."""
        return self._splitter is not None and self._splitter.thinks

    @property
    def is_overdue(self) -> bool:
        """Return whether an open thought has reached its most tokens, so that `close` is to be called."""
        if self._splitter is None or self._splitter.is_undecided:
            return False
        return self._splitter.thinks and self.thought_tokens >= self._most

    @property
    def is_hopeless(self) -> bool:
        """Return whether the model opens thoughts however often they are closed for it."""
        return self.is_overdue and self._closings >= MOST_CLOSINGS

    def take(self, piece: str, tokens: int = 1) -> str:
        """Takes a piece of that many tokens; returns what it adds to the text."""
        thought = self.thinks
        text = self._splitter.feed(piece) if self._splitter else piece
        if thought or self.thinks or self._is_layout(text):
            self.thought_tokens += tokens
        else:
            self.text_tokens += tokens
        self._text.add(text)
        return text

    def _is_layout(self, text: str) -> bool:
        """Return whether a piece is only white space between a thought and the text."""
        if text or self.text or not self.thought_tokens:
            return False
        self._layout += 1
        return self._layout <= MOST_LAYOUT

    def close(self) -> str:
        """What closes the open thought, for the engine to write in the model's place; raises ValueError if none is."""
        if self._splitter is None or not self._splitter.thinks:
            raise ValueError("no thought is open")
        self._closings += 1
        closing = self._splitter.closing
        self._text.add(self._splitter.feed(closing))
        return closing

    def end(self, *, cut: bool) -> str:
        """The rest of the text once nothing more comes; cut: whether the model was stopped at its most tokens."""
        text = self._splitter.end(cut=cut) if self._splitter else ""
        self._text.add(text)
        return text
