"""A prompt as a server is shown it: the text of a completion, or the messages of a chat."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile, zip_longest
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.calls import GIVEN_IDS, Call, given_ids
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Demonstrated, Prompt, Role, Span, Text, Turn, quoted_spans
from cotrail.engines.language_models.chat_template import ChatTemplate
from cotrail.engines.language_models.endpoint import Api, Continues, Endpoint
from cotrail.engines.language_models.token_counts import Dialect

INSTRUCTION = "Continue the text below. Write only what comes next, and repeat nothing of it."
"""Beginning of the only message of a chat about a prompt without roles: a chat model would otherwise answer the whole
prompt instead of continuing it."""

_NO_ID = re.compile("[^A-Za-z0-9]")


class Message(Struct, frozen=True, kw_only=True):
    """One turn.

    shared: the beginning of its text that the prompts of all questions have; text: what stands behind it.
    calls: of tools, or none; answers: the call that it answers, in a tool's turn; both with the ids that are sent.
    carried: see `Generated`.
    """

    role: Role
    shared: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    answers: Call | None = None
    carried: dict[str, Any] = {}

    @property
    def whole(self) -> str:
        """Its whole text."""
        return self.shared + self.text


def conversation(prompt: Prompt) -> list[Message]:
    """The turns of a prompt; one without roles is a single message of the user's, which asks to continue it."""
    if not prompt.has_roles:
        shared, text = _divided(prompt.turns[0])
        return [Message(role="user", shared=f"{INSTRUCTION}\n\n{shared}", text=text)]
    return list(_turns(prompt))


def last_shared(said: Sequence[Message]) -> Message | None:
    """The last turn that begins as it does for all questions: one mark is for all before it."""
    return next((each for each in reversed(said) if each.shared.strip()), None)


def sent_ids(prompt: Prompt) -> dict[str, str]:
    """The ids under which calls and their answers are sent, by those that the system gave them.

    They are those that the server gave, or else such as every server takes.
    """
    sent = {turn.answers: _made_id(turn.answers) for turn in prompt.turns if turn.answers}
    for turn in prompt.turns:
        given = given_ids(turn.carried)
        sent |= {call.id: id_ or _made_id(call.id) for call, id_ in zip_longest(turn.calls, given[: len(turn.calls)])}
    return sent


def _made_id(own: str) -> str:
    """Nine letters and digits, which Mistral wants, for calls that no server gave an id."""
    turn, _, number = own.partition(".")
    return _NO_ID.sub("", f"call{turn:0>3}{number:0>2}")


def arguments_of(call: Call) -> dict[str, Any]:
    """The arguments of a call as an object, which a model that wrote no JSON didn't give."""
    try:
        return msgspec.json.decode(call.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}


def _turns(prompt: Prompt) -> Iterator[Message]:
    called, ids = dict[str, Call](), sent_ids(prompt)
    is_shared = True
    for turn in prompt.turns:
        shared, text = _divided(turn) if is_shared else ("", turn.text)
        is_shared = is_shared and not text and not turn.calls
        calls = tuple(replace(call, id=ids[call.id]) for call in turn.calls)
        unknown = Call(name="", arguments="", id=ids.get(turn.answers, ""))
        yield Message(
            role=turn.role,
            shared=shared,
            text=text,
            calls=calls,
            answers=called.get(turn.answers, unknown) if turn.answers else None,
            carried=msgspec.json.decode(turn.carried) if turn.carried else {},
        )
        called |= {own.id: call for own, call in zip(turn.calls, calls, strict=True)}


def _divided(turn: Turn) -> tuple[str, str]:
    """The part of a turn's text that the prompts of all questions have, and the rest."""
    own = takewhile(lambda piece: isinstance(piece, Demonstrated | Text), turn.pieces)
    length = sum(len(piece.text) for piece in own)
    # Lower case may have another length than its text, though hardly ever.
    return (turn.text[:length], turn.text[length:]) if not turn.lower else ("", turn.text)


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
    """The chat template of completions, which the endpoint's table names; raises InputError where it is unusable."""

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
