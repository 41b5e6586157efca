"""Thoughts of models in the worker: whether a model thinks, and how long it may."""

from collections.abc import Collection

import msgspec
from msgspec import Struct

from cotrail.core.prompts import Prompt
from cotrail.engines.language_models.thinking import NO_THOUGHT, Thinking, Thought
from cotrail.engines.language_models.thoughts import MARKS, Marks, ThinkingText, ThoughtSplitter, begins_inside
from cotrail.errors import BlockedError

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
            left beside those of the text.
        """
        if not self.marks:
            return ThinkingText()
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
            "again and submit the run anew"
        )


def _has(marks: Marks, template: str, vocabulary: Collection[str]) -> bool:
    return marks.closing in template or {marks.opening, marks.closing} <= {*vocabulary}
