"""Thoughts of models in the worker: whether a model thinks, and how long it may."""

from collections.abc import Collection

import msgspec
from msgspec import Struct

from cotrail.core.prompts import Prompt
from cotrail.engines.language_models.stop_conditions import GrowingText
from cotrail.engines.language_models.thinking import (
    MARKS,
    NO_THOUGHT,
    Marks,
    Thinking,
    Thought,
    Unframed,
    begins_inside,
)
from cotrail.engines.language_models.thoughts import ThoughtSplitter
from cotrail.errors import BlockedError

# What a model in the worker writes, token by token: its thoughts, separated from its text and bounded.

MOST_CLOSINGS = 3
"""How often a thought is closed for a model that thinks too long; a model that then opens another one is stopped."""

MOST_LAYOUT = 8
"""How many pieces of white space behind a thought don't count as text."""


class ThinkingText:
    """Takes what a model writes piece by piece, and tells its thoughts from its text.

    splitter: None for a model that doesn't think, all of whose pieces are text.
    most: the most tokens of its thoughts; thought_tokens: their number so far, with the marks around them.
    text_tokens: the number of the others.
    """

    def __init__(self, splitter: ThoughtSplitter | None = None, most: int = 0) -> None:
        self._splitter = splitter
        self._unframed = Unframed()
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
        # In the middle of a mark nothing is closed: it may be the very mark that ends the thought.
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
        text = self._unframed.feed(self._splitter.feed(piece)) if self._splitter else piece
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
        self._text.add(self._unframed.feed(self._splitter.feed(closing)))
        return closing

    def end(self, *, cut: bool) -> str:
        """The rest of the text once nothing more comes; cut: whether the model was stopped at its most tokens."""
        text = self._unframed.feed(self._splitter.end(cut=cut)) + self._unframed.end() if self._splitter else ""
        self._text.add(text)
        return text


THOUGHT_TOKENS = 2048
"""The most tokens of a thought where the model's table gives none, as long as that is no more than a quarter of the
context."""


CLOSING_TOKENS = 32
"""Tokens of the context that are kept free for closing the model's thoughts in its place."""


class WorkerThoughts(Struct, frozen=True, kw_only=True):
    """How a model in the worker thinks.

    marks: those that it writes around its thoughts; none for a model that doesn't think.
    most: the most tokens of its thoughts.
    """

    thinking: Thinking = Thinking()
    marks: tuple[Marks, ...] = ()
    most: int = 0

    def reserved(self, prompt: Prompt) -> int:
        """Tokens of the context that are kept free for thoughts.

        A model that isn't said to think seldom does so behind plain text, whose demonstrations need the room: there its
        thoughts have what is left.
        """
        return self.most if self.marks and (prompt.has_roles or self.thinking.may_think) else 0

    def text(self, rendered: str, room: int) -> ThinkingText:
        """What takes the continuation of a prompt.

        rendered: the end of a conversation as the template lays it out, empty for plain text; room: tokens that are
            left in addition to those of the text.
        """
        if not self.marks:
            return ThinkingText()
        # Closing marks, written in the model's place, take tokens of the context too.
        room -= CLOSING_TOKENS
        inside = begins_inside(rendered, self.marks) or (bool(rendered) and self.thinking.thinks == "inside")
        # The mark that the prompt ends in is the one that closes the thought.
        opened = sorted(self.marks, key=lambda marks: not rendered.rstrip().endswith(marks.opening))
        return ThinkingText(ThoughtSplitter(opened, inside=inside), max(0, min(self.most, room)))

    def thought(self, written: ThinkingText, *, has_calls: bool) -> Thought:
        """What is recorded of a model's thoughts; has_calls: whether it called tools.

        Raises BlockedError where the text begins with a thought that nothing said the model would have.
        """
        if not self.marks and self.thinking.thinks is None:
            _check_undeclared(written.text)
        if not written.thought_tokens:
            return NO_THOUGHT
        handed_back = written.thoughts and self.thinking.takes_back(has_calls=has_calls)
        carried = msgspec.json.encode({"reasoning_content": written.thoughts}).decode() if handed_back else ""
        return Thought(text=written.thoughts, kind="whole", carried=carried)

    def shown_controls(self, controls: Collection[str]) -> tuple[str, ...]:
        """Those control tokens of a vocabulary that the marks consist of."""
        marks = [text for each in self.marks for text in (each.opening, each.closing, each.written)]
        return tuple(control for control in controls if control and any(control in text for text in marks))


def worker_thoughts(
    thinking: Thinking, context: int, template: str | None, vocabulary: Collection[str]
) -> WorkerThoughts:
    """How a model thinks, by its table, and where that doesn't say, by its chat template and the tokens of its own.

    context: tokens of a prompt and its continuation; vocabulary: the texts of its control tokens and others of its own.
    """
    if thinking.thinks == "no":
        return WorkerThoughts(thinking=thinking)
    found = tuple(marks for marks in MARKS if _has(marks, template or "", vocabulary))
    most = thinking.thought_tokens or min(THOUGHT_TOKENS, context // 4)
    return WorkerThoughts(thinking=thinking, marks=found or (MARKS if thinking.may_think else ()), most=most)


def _check_undeclared(text: str) -> None:
    opened = next((marks.opening for marks in MARKS if text.lstrip().startswith(marks.opening)), None)
    if opened:
        raise BlockedError(
            f"the model writes its thoughts into its text ({opened}), which its chat template doesn't say: set "
            'thinks = "tags" in its table in the list of models ("no" where this is no thought), start the workers '
            "again and submit the run again"
        )


def _has(marks: Marks, template: str, vocabulary: Collection[str]) -> bool:
    return marks.closing in template or {marks.opening, marks.closing} <= {*vocabulary}
