"""A prompt as a server is shown it: the text of a completion, or the messages of a chat."""

from typing import Any

import msgspec

from cotrail.core.prompts import Prompt
from cotrail.engines.language_models.chat_template import ChatTemplate
from cotrail.engines.language_models.endpoint import Api, Continues, Endpoint
from cotrail.engines.language_models.served.control_tokens import (
    BREAK,
    broken,
    control_tokens,
    cut_controls,
    cut_quoted,
)
from cotrail.engines.language_models.served.conversation import INSTRUCTION

_CONTINUING: dict[Continues, dict[str, Any]] = {
    "vllm": {"continue_final_message": True, "add_generation_prompt": False},
    "llama.cpp": {},
    "prefix": {},
}


CHAT_TOKENS = 128
"""Tokens of the context that are reserved for the chat template and the instruction."""


def reserved_tokens(api: Api) -> int:
    """Tokens of the context that something other than the prompt takes."""
    return 0 if api == "completions" else CHAT_TOKENS


class Template:
    """The chat template of completions; raises InputError where it is unusable.

    endpoint: its table, which names one.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._source, self._bos, self._eos = endpoint.chat_template_source, endpoint.bos, endpoint.eos
        self._variables = endpoint.template
        self._usual = self._laying_out(frozenset())

    def pieces(self, prompt: Prompt) -> list[str]:
        """The conversation as text, cut as `cut_controls` does, but not in the template's own control tokens."""
        # A conversation is rendered as JSON, whose escapes may stand within a control token.
        quoted = control_tokens(prompt.render().replace("\\", ""))
        template = self._laying_out(quoted) if quoted else self._usual
        pieces = [""]
        for segment in template.lay_out(prompt):
            first, *others = cut_controls(segment.text) if segment.plain else [segment.text]
            pieces[-1] += first
            pieces += others
        return pieces

    def _laying_out(self, quoted: frozenset[str]) -> ChatTemplate:
        return ChatTemplate(self._source, self._bos, self._eos, quoted, self._variables)


def chat_fields(prompt: Prompt, continues: Continues | None) -> dict[str, Any]:
    """The fields of a body that hold a prompt's messages and tools."""
    contents = [BREAK.join(pieces) for pieces in cut_quoted(prompt)]
    if not prompt.has_roles:
        return {"messages": [{"role": "user", "content": f"{INSTRUCTION}\n\n{contents[0]}"}]}
    fields: dict[str, Any] = msgspec.json.decode(broken(prompt.handing_back("none").render()))
    for turn, message, content in zip(prompt.turns, fields["messages"], contents, strict=True):
        message["content"] = content
        _hand_back(turn.carried, message)
    if not prompt.continues_last_turn or continues is None:
        return fields
    # Servers open a turn by themselves, and some can't tell where an empty one ends.
    if not prompt.turns[-1].text:
        fields["messages"].pop()
        return fields
    if continues == "prefix":
        fields["messages"][-1]["prefix"] = True
    return fields | _CONTINUING[continues]


def _hand_back(carried: str, message: dict[str, Any]) -> None:
    """Puts what is carried back into the model's message, exactly as the server wrote it."""
    if not carried:
        return
    fields: dict[str, Any] = msgspec.json.decode(carried)
    if isinstance(content := fields.pop("content", None), list):
        message["content"] = [*content, {"type": "text", "text": message["content"]}]
    message.update(fields)
