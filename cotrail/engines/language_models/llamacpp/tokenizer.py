"""Prompts as tokens; nothing that is only quoted in one is taken for a control token."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from cotrail.core.prompts import Prompt
from cotrail.engines.language_models.chat_template import ChatTemplate, template_lacks
from cotrail.engines.language_models.gguf_metadata import gguf_metadata
from cotrail.engines.language_models.llamacpp.server import Server, TokenIds
from cotrail.engines.language_models.quoted_controls import divided, named_controls
from cotrail.engines.language_models.segments import Segment, control_pattern
from cotrail.engines.language_models.token_counts import cached_count
from cotrail.errors import StepError

CACHED_PROMPTS = 32
"""The most prompts whose tokens are kept: packing asks for them once or twice before they are read."""


class LlamaCppTokenizer:
    """The tokenizer of a loaded model, and its chat template.

    path: the model's file; open_template: its template, None where it has none.
    encode: the tokens of a prompt. Raises StepError where the model takes no such prompt, TransientStepError.
    count: the number of tokens of a part of a prompt. Raises TransientStepError.
    """

    def __init__(self, server: Server, path: Path, open_template: Callable[[], ChatTemplate | None]) -> None:
        self._server = server
        self._path = path
        self._open_template = open_template
        self.encode = lru_cache(maxsize=CACHED_PROMPTS)(self._encode)
        self.count = cached_count(lambda text: len(server.tokens(text)))

    def _encode(self, prompt: Prompt) -> TokenIds:
        if not prompt.has_roles:
            return self._encode_plain(prompt)
        segments = self._laid_out(prompt)
        # The template itself decides what the text begins with.
        if any(segment.plain for segment in segments):
            return self._server.tokens(self._parts(segments), begins=False)
        return self._server.tokens("".join(segment.text for segment in segments), begins=False, has_controls=True)

    def _encode_plain(self, prompt: Prompt) -> TokenIds:
        segments = divided(prompt.turns[0], self._control)
        if not any(self._control.search(segment.text) for segment in segments if not segment.plain):
            return self._server.tokens(prompt.render())
        if len(segments) == 1:
            return self._server.tokens(prompt.render(), has_controls=True)
        # What is expected at the beginning stands before a text, be it an empty one.
        return self._server.tokens(["", *self._parts(segments)])

    def named_controls(self, prompt: Prompt, stop: Sequence[str]) -> set[str]:
        """The control tokens that the model is to write as text, see `segments`."""
        return named_controls(prompt.turns, stop, self._control)

    def end(self, prompt: Prompt) -> str:
        """The end of a conversation as the template lays it out, behind which the model writes; empty for plain text.

        Raises as `encode` does.
        """
        return self._laid_out(prompt)[-1].text if prompt.has_roles else ""

    def _laid_out(self, prompt: Prompt) -> list[Segment]:
        if refused := template_lacks(self._template, "tools" if prompt.tools else "turns"):
            raise StepError(f"the model {refused}")
        return self._template.lay_out(prompt) if self._template else []

    def _parts(self, segments: Sequence[Segment]) -> list[str | int]:
        """The conversation as its control tokens and the texts between them.

        llama.cpp tokenizes each text between two control tokens by itself too, so that all else stays as it is.
        """
        parts: list[str | int] = []
        text = ""
        for segment in segments:
            for piece in [segment.text] if segment.plain else self._between.split(segment.text):
                if segment.plain or piece not in self._ids:
                    text += piece
                else:
                    parts += [text, self._ids[piece]]
                    text = ""
        return [part for part in [*parts, text] if part != ""]

    @cached_property
    def _template(self) -> ChatTemplate | None:
        return self._open_template()

    @cached_property
    def _ids(self) -> dict[str, int]:
        return gguf_metadata(self._path).controls

    @cached_property
    def _control(self) -> re.Pattern[str]:
        return control_pattern(self._ids)

    @cached_property
    def _between(self) -> re.Pattern[str]:
        # In a group, so that `split` returns the control tokens too.
        return re.compile(f"({self._control.pattern})")
