"""Thoughts of a model, separated from its text by the marks that it writes around them."""

import re
from collections.abc import Sequence
from enum import Enum, auto

from cotrail.engines.language_models import thinking
from cotrail.engines.language_models.stop_conditions import GrowingText


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

    The last closing mark ends a thought, if it may quote others (`quotes`): one among the words of a line closes it
    only if no other does, and one that isn't takes the text before it back, which was still a thought.

    marks: those of the model, all that are known by default.
    inside: whether the prompt ends in the opening mark, so that the model begins with a thought.
    waits: whether the model may have begun with a thought though it writes no opening mark. The text then counts as
        such only once the model ends, as everything before a closing mark is a thought.
    ends: whether the model ends its texts by itself, as it does in a conversation: without a mark, one that reached its
        most tokens and those of a thought is a thought, if it waits.
    quotes: whether a thought may quote closing marks. What stands behind a mark then has to be read to know it.
    takes_back: whether all that it returned before the last piece is no text after all.
    """

    def __init__(
        self,
        marks: Sequence[thinking.Marks] = thinking.MARKS,
        *,
        inside: bool = False,
        waits: bool = False,
        ends: bool = False,
        quotes: bool = False,
    ) -> None:
        self._by_opening = {each.opening: each for each in marks}
        self._by_closing = {each.closing: each for each in marks}
        self._pattern = thinking.mark_pattern(tuple(marks))
        self._beginnings = thinking.beginnings((*self._by_opening, *self._by_closing))
        self._marks: thinking.Marks | None = marks[0] if inside else None
        self._any_closing = inside
        self._state = _State.THOUGHT if inside else _State.START
        self._depth = 1
        self._waits = waits
        self._ends = ends
        self._quotes = quotes
        self.takes_back = False
        self._quoted = ""
        self._taken = ""
        self._added = 0
        self._text = GrowingText()
        self._before = ""
        self._rest = ""
        self._held = GrowingText()
        self._thoughts = GrowingText()
        self._after_close: list[str] = []

    @property
    def thoughts(self) -> str:
        """What was thought so far."""
        return thinking.without_frames(self._thoughts.text).strip()

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
        self.takes_back = False
        read, text, place = self._rest + piece, list[str](), 0
        certain: int | None = None
        for match in self._pattern.finditer(read):
            mark, is_last = match[0], match.end() == len(read)
            if is_last and self._quotes and mark in self._by_closing:
                certain = match.start()
                break
            text.append(self._take(read[place : match.start()]))
            if self._ends_more(mark, quoted := self._is_quoted(read, match)):
                self._take_back(mark, "".join(text))
                text = []
            else:
                text.append(self._meet(mark, quoted=quoted))
            place = match.end()
        if certain is None:
            certain = len(read) - thinking.pending(read[place:], self._beginnings)
        text.append(self._take(read[place:certain]))
        self._before, self._rest = read[:certain][-1:] or self._before, read[certain:]
        return self._said("".join(text))

    def end(self, *, cut: bool = False) -> str:
        """The rest of the text, once the model has ended; cut: whether it reached its most tokens instead."""
        rest, self._rest = self._rest, ""
        if rest not in self._by_closing:
            text = self._take(rest)
        else:
            text = "" if self._state is _State.TEXT else self._meet(rest, quoted=False)
        held, self._held = self._held.text, GrowingText()
        match self._state:
            case _State.WAITING if cut and self._ends:
                self._thoughts.add(held)
            case _State.WAITING if self._quoted:
                thought, _, behind = held.rpartition(self._quoted)
                self._thoughts.add(thought)
                return text + behind.lstrip()
            case _State.WAITING:
                return text + held
            case _State.QUOTED if cut:
                self._thoughts.add(held)
            case _State.QUOTED:
                return text + held
            case _State.START if self._taken and not cut:
                # The text that was taken back stays one, as no other follows.
                self._thoughts = _without_end(self._thoughts, self._added)
                return self._taken
            case _State.THOUGHT if self._after_close and not (cut and self._quoted):
                return text + self._text_behind_the_last_close()
        return text

    def _is_quoted(self, read: str, match: re.Match[str]) -> bool:
        """Return whether a mark is quoted, by the characters around it."""
        before = read[max(0, match.start() - 1) : match.start()] or self._before
        return self._quotes and thinking.is_quoted(before, read[match.end() : match.end() + 1])

    def _said(self, text: str) -> str:
        """The text, which is kept where it may still have to be taken back."""
        if self._quotes:
            self._text.add(text)
        return text

    def _ends_more(self, mark: str, quoted: bool) -> bool:  # noqa: FBT001 - one caller
        """Return whether a mark behind a text ends a thought that the text was part of."""
        if self._state is not _State.TEXT or quoted or not self._quotes or mark not in self._by_closing:
            return False
        return self._marks is None or self._marks.closing == mark

    def _take_back(self, mark: str, unsaid: str) -> None:
        """Makes all of the text thoughts; unsaid: what of it wasn't returned yet."""
        self._taken = self._text.text + unsaid
        added = f"{mark if self.met else ''}{self._taken}"
        self._thoughts.add(added)
        self._added = len(added)
        self._text, self.takes_back = GrowingText(), True
        self._marks, self._state = self._by_closing[mark], _State.START

    def _take(self, piece: str) -> str:
        match self._state:
            case _State.START if piece.strip():
                self._taken = ""
                self._state = _State.WAITING if self._waits and not self.met else _State.TEXT
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
        return piece.lstrip() if self.met else before + piece

    def _think(self, piece: str) -> None:
        self._thoughts.add(piece)
        if self._after_close:
            self._after_close.append(piece)

    def _meet(self, mark: str, *, quoted: bool) -> str:
        if mark in self._by_opening:
            return self._open(mark)
        return self._quote(mark) if quoted else self._close(mark)

    def _quote(self, mark: str) -> str:
        """Takes a closing mark among words: it ends the thought if none does that isn't quoted."""
        match self._state:
            case _State.THOUGHT if self._any_closing or (self._marks and self._marks.closing == mark):
                self._thoughts.add(mark)
                self._after_close, self._quoted = [mark], mark
            case _State.WAITING:
                self._held.add(mark)
                self._quoted = mark
            case _:
                return self._close(mark)
        return ""

    def _open(self, mark: str) -> str:
        match self._state:
            case _State.START:
                if self.met:
                    self._thoughts.add("\n\n")
                self._held, self._marks = GrowingText(), self._by_opening[mark]
                self._state, self._depth, self._after_close = _State.THOUGHT, 1, []
                self._taken = self._quoted = ""
            case _State.THOUGHT:
                opened = self._by_opening[mark]
                self._depth += opened.nests and self._marks == opened
                self._think(mark)
            case _State.TEXT | _State.WAITING:
                # A model that writes opening marks hasn't begun with a thought that has none.
                self._quoted = ""
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
            case _State.START | _State.WAITING if not self.met:
                # It opened in the prompt, or nowhere.
                self._thoughts.add(self._held.text)
                self._held, self._marks, self._state = GrowingText(), marks, _State.START
            case _State.THOUGHT if self._closes(marks):
                self._depth -= 1
                self._quoted = ""
                if self._depth:
                    self._after_close = [mark]
                    self._thoughts.add(mark)
                else:
                    self._state = _State.START
            case _State.THOUGHT:
                self._think(mark)
            case _State.QUOTED if self._marks and self._marks.closing == mark:
                self._thoughts.add(f"\n\n{self._held.text.removeprefix(self._marks.opening)}")
                self._held, self._state = GrowingText(), _State.TEXT
            case _State.TEXT:
                return mark
            case _State.START:
                pass
            case _:
                self._held.add(mark)
        return ""

    def _closes(self, marks: thinking.Marks) -> bool:
        if self._any_closing:
            self._marks, self._any_closing = marks, False
        return self._marks is not None and self._marks.closing == marks.closing

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
