"""Grammars of structured output, which llguidance holds models in the worker to while they write.

llama.cpp has llguidance built in, and transformers' models are held by its Python package, so that both write the same
form. What the library can't hold a text to, keywords that it doesn't know or schemas beyond its bounds in time and
memory, is written freely. All texts are checked once they are whole, see `cotrail.core.actions.generate`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cotrail.core.structured_output import Form
from cotrail.engines.language_models.thinking import Marks, control_pattern, divided_at, spans_of
from cotrail.engines.language_models.worker_thoughts import ThinkingText

_OPTIONS: dict[str, Any] = {
    # JSON in one line, spaced as most of it is; white space of any length could go on without end.
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    # Keywords that it doesn't know are left to the check of the whole text, and so is that no two of `oneOf` fit.
    "lenient": True,
    "coerce_one_of": True,
}


class Grammars(Struct, frozen=True, kw_only=True):
    """The grammars that a generation is held to; empty where anything may be written.

    start: at its beginning, where a thought may open in place of the text; behind_thought: behind one.
    """

    start: str = ""
    behind_thought: str = ""


FREE = Grammars()
"""Of a generation that is held to nothing."""


def grammars(form: Form, marks: Sequence[Marks], own_tokens: Mapping[str, int]) -> Grammars:
    """The grammars of a form.

    marks: those that the model writes around its thoughts; own_tokens: the tokens of its vocabulary that aren't pieces
        of words, with their ids.
    """
    if not (form.schema or form.choices):
        return FREE
    rule = _json(form.schema) if form.schema else " | ".join(map(json.dumps, form.choices))
    openings = [_literal(each.opening, own_tokens) for each in marks]
    return Grammars(
        start=_grammar(" | ".join([*openings, "/ ?/ form"]), rule),
        behind_thought=_grammar(r"/\n{0,2} ?/ form", rule) if marks else "",
    )


class Guide:
    """Says which of its grammars a generation is held to, as it is written: none within a thought.

    written: takes what the model writes. grammar: the one that holds now, empty for none.
    """

    def __init__(self, grammars: Grammars, written: ThinkingText) -> None:
        self._grammars = grammars
        self._written = written
        self.grammar = "" if written.thinks else grammars.start

    def follow(self) -> bool:
        """Takes note of what was written; returns whether another grammar holds from there on."""
        before, self.grammar = self.grammar, self._next()
        return self.grammar != before

    def _next(self) -> str:
        # The token that closes a thought may hold the beginning of the text too, which then continues as freely.
        if self._written.thinks or (self._written.has_text and not self.grammar):
            return ""
        return self._grammars.behind_thought if self._written.thought_tokens else self._grammars.start


def _grammar(start: str, rule: str) -> str:
    return f"%llguidance {{}}\nstart: {start}\nform: {rule}\n"


def _json(schema: str) -> str:
    described = json.loads(schema)
    options = {"x-guidance": _OPTIONS}
    return f"%json {json.dumps(described | options if isinstance(described, dict) else described)}"


def _literal(text: str, own_tokens: Mapping[str, int]) -> str:
    """A text in a grammar, which may be written in pieces of words or in tokens of its own."""
    parts = divided_at(text, spans_of(control_pattern(own_tokens))(text))
    return " ".join(
        f"(<[{own_tokens[each]}]> | {json.dumps(each)})" if at else json.dumps(each) for each, at in parts if each
    )
