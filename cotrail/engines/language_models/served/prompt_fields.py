"""A prompt as a server is shown it: the text of a completion, or the messages of a chat."""

import re
from itertools import pairwise
from typing import Any

import msgspec

from cotrail.core.calls import GIVEN_IDS
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt, Span, quoted_spans
from cotrail.engines.language_models.chat_template import ChatTemplate
from cotrail.engines.language_models.endpoint import Api, Continues, Endpoint
from cotrail.engines.language_models.served.conversation import INSTRUCTION, sent_ids
from cotrail.engines.language_models.served.tokenizer import Dialect

# Texts that look like control tokens, in what a prompt only quotes: a server's tokenizer would take them for such.

BREAK = "\u200b"
"""A zero-width space, which keeps a text from being a control token where only text can be sent."""

_LOOKS_LIKE_ONE = re.compile(
    # ChatML, Llama 3, Phi, Gemma 4 and most others; DeepSeek's bars are full-width.
    r"<\|[^\s<>|\u200b]{1,60}\|?>|<[^\s<>|\u200b]{1,60}\|>|<\uff5c[^\s<>\u200b]{1,60}\uff5c>"
    # SentencePiece's own, T5's and Gemma's.
    r"|</?s>|<(?:bos|eos|pad|unk|mask|sep|cls|eod|eot|eoa|sop|extra_id_\d+|(?:start|end)_of_\w+|[A-Z_]+_TOKEN)>"
    # Llama 2's and Mistral's, and BERT's.
    r"|<</?SYS>>|\[/?(?:[A-Z]+_[A-Z_]+|INST|THINK|ARGS|IMG|BOS|EOS|CLS|SEP|PAD|UNK|MASK|gMASK)\]"
)

_BEGINS_ONE = re.compile(f"(?=({_LOOKS_LIKE_ONE.pattern}))")
"""Without width, since one may stand within another: `<|[INST]|>`."""


def control_tokens(text: str) -> frozenset[str]:
    """What looks like a control token of some model's."""
    return frozenset(_LOOKS_LIKE_ONE.findall(text))


def cut_controls(text: str) -> list[str]:
    """The text in pieces, none of which holds what looks like a control token: each is cut behind its first character.

    Joined, the pieces are the text again.
    """
    return _cut(text, _spans(text))


def cut_quoted(prompt: Prompt) -> list[list[str]]:
    """Each turn's text in pieces, cut in the same way where it only quotes what looks like a control token."""
    spans = quoted_spans(prompt.turns, _spans)
    return [_cut(turn.text, quoted) for turn, quoted in zip(prompt.turns, spans, strict=True)]


def broken(text: str) -> str:
    """The text with a `BREAK` behind the first character of what looks like a control token."""
    return BREAK.join(cut_controls(text))


def _spans(text: str) -> list[Span]:
    return [match.span(1) for match in _BEGINS_ONE.finditer(text)]


def _cut(text: str, spans: list[Span]) -> list[str]:
    return [text[start:end] for start, end in pairwise([0, *(start + 1 for start, _ in spans), len(text)])]


# Structured output: the fields by which a server holds a model to a schema or to several words.


def structure_fields(dialect: Dialect, request: GenerationRequest) -> dict[str, Any]:
    """The fields for what the request asks for; empty where the server promises nothing of the kind."""
    if request.choices:
        return _choice_fields(dialect, request.choices)
    if not request.schema:
        return {}
    schema = msgspec.json.decode(request.schema)
    if dialect == "llama.cpp":
        return {"json_schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": json_schema_format(schema)}}


def json_schema_format(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema under the name that OpenAI's APIs want, held to strictly where it is of the form that they take so."""
    return {"name": "answer", "schema": schema, "strict": _is_strict(schema)}


def _choice_fields(dialect: Dialect, choices: tuple[str, ...]) -> dict[str, Any]:
    if dialect == "vllm":
        return {"structured_outputs": {"choice": list(choices)}}
    if dialect == "llama.cpp":
        words = " | ".join(msgspec.json.encode(each).decode() for each in choices)
        return {"grammar": f"root ::= {words}"}
    return {}


def _is_strict(schema: Any) -> bool:
    """Return whether each object in a schema has all its properties and no others, as OpenAI's strict mode requires."""
    match schema:
        case dict():
            if schema.get("type") == "object" or "properties" in schema:
                properties = schema.get("properties", {})
                if schema.get("additionalProperties") is not False:
                    return False
                if set(properties) != set(schema.get("required", ())):
                    return False
            return all(map(_is_strict, schema.values()))
        case list():
            return all(map(_is_strict, schema))
    return True


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
    ids = sent_ids(prompt)
    for turn, message, content in zip(prompt.turns, fields["messages"], contents, strict=True):
        message["content"] = content
        for call, sent in zip(turn.calls, message.get("tool_calls", ()), strict=True):
            sent["id"] = ids[call.id]
        if turn.answers:
            message["tool_call_id"] = ids[turn.answers]
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
    message.pop("carried", None)
    fields: dict[str, Any] = msgspec.json.decode(carried) if carried else {}
    fields.pop(GIVEN_IDS, None)
    if isinstance(content := fields.pop("content", None), list):
        message["content"] = [*content, {"type": "text", "text": message["content"]}]
    message.update(fields)
