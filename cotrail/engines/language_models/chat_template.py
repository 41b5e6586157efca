"""Chat templates: a model's own layout of a conversation as text, in Jinja.

The environment is the one that Hugging Face documents for them ("Writing a chat template"), without the clock.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import msgspec
from jinja2 import TemplateError, meta, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from cotrail.core.generation import Capability
from cotrail.core.prompts import Prompt, Text, Turn, quoted_spans
from cotrail.engines.language_models.thinking import Segment, control_pattern, divided_at, spans_of
from cotrail.errors import InputError, StepError

TODAY = datetime(2024, 7, 26)
"""What templates get as today, the date that Llama's templates themselves fall back to: nothing that a model is
shown depends on the clock."""

_PRIVATE = range(0xF0000, 0xFFFFE)
"""Characters without a meaning (Unicode's Supplementary Private Use Area-A), which serve as placeholders."""


class ChatTemplate:
    """A model's chat template.

    source: in Jinja; bos, eos: the control tokens that begin and end texts, as the template may show them.
    controls: the texts of all control tokens of the vocabulary; what is only quoted holds none, see
        `cotrail.core.prompts.quoted_spans`.
    variables: further variables of the template, such as `enable_thinking`.
    Raises InputError where it isn't a template.
    """

    def __init__(
        self,
        source: str,
        bos: str = "",
        eos: str = "",
        controls: Collection[str] = (),
        variables: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._source = source
        self._variables = {**variables, "bos_token": bos, "eos_token": eos}
        self._controls = control_pattern(controls)
        try:
            self._template = _ENVIRONMENT.from_string(source)
        except TemplateError as error:
            raise InputError(f"the model's chat template can't be read: {error}; correct it in its files") from error

    @cached_property
    def takes_tools(self) -> bool:
        """Return whether it shows the model tools."""
        return "tools" in meta.find_undeclared_variables(_ENVIRONMENT.parse(self._source))

    def lay_out(self, prompt: Prompt) -> list[Segment]:
        """The segments of a conversation as the model is shown it; joined they are the whole text.

        A last turn of the assistant's stays open, so that the model continues it.
        Raises StepError where the template refuses the conversation.
        """
        held = {*prompt.render(), *self._source}
        unused = (character for character in map(chr, _PRIVATE) if character not in held)
        end, hidden = next(unused), dict[str, str]()

        def hide(text: str) -> str:
            return self._controls.sub(lambda match: hidden.setdefault(match[0], next(unused)), text)

        messages = [_each_text(_message(turn), hide) for turn in prompt.turns]
        quoted = quoted_spans(prompt.turns, spans_of(self._controls))
        for message, turn, spans in zip(messages, prompt.turns, quoted, strict=True):
            message["content"] = "".join(hide(part) if at else part for part, at in divided_at(turn.text, spans))
        if prompt.continues_last_turn:
            messages[-1]["content"] += end
        text = self._render(messages, _each_text(prompt.functions, hide), opens=not prompt.continues_last_turn)
        if prompt.continues_last_turn:
            text = _up_to(end, text)
        return _segments(text, {mark: control for control, mark in hidden.items()})

    def _render(self, messages: list[Any], tools: list[Any], *, opens: bool) -> str:
        try:
            return self._template.render(
                messages=messages, tools=tools or None, add_generation_prompt=opens, **self._variables
            )
        # Templates add texts to missing values and the like.
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise StepError(
                f"the model's chat template refuses the conversation: {error}; take another model, or a system whose "
                "turns it takes"
            ) from error


def template_lacks(template: ChatTemplate | None, capability: Capability) -> str | None:
    """Why a model with this template lacks a capability, see `ModelEngine.lacks`."""
    if capability in ("scores", "sampling", "structure"):
        return None
    if template is None:
        return (
            "takes no conversations, since its files hold no chat template: take a model that was tuned for chats, or "
            "a system that prompts with plain text"
        )
    if capability == "tools" and not template.takes_tools:
        return "isn't shown tools by its chat template: take a model that was tuned to call tools"
    return None


class _Generation(Extension):
    """`{% generation %}`, which marks what the assistant says for training, and shows it as it is."""

    tags = {"generation"}  # noqa: RUF012 - Jinja declares it so

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> None:
    raise TemplateError(message)


def _environment() -> ImmutableSandboxedEnvironment:
    # A template lays out text for a model, where nothing is to be escaped.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, autoescape=False, extensions=[loopcontrols, _Generation]
    )
    environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
    environment.globals.update(raise_exception=_raise_exception, strftime_now=TODAY.strftime)
    return environment


_ENVIRONMENT = _environment()


def _message(turn: Turn) -> dict[str, Any]:
    """A turn as templates take it: the arguments of calls as values, and what is handed back of its thoughts."""
    message = turn.message
    if carried := message.pop("carried", ""):
        message |= msgspec.json.decode(carried)
    for call in message.get("tool_calls", ()):
        try:
            call["function"]["arguments"] = msgspec.json.decode(call["function"]["arguments"])
        except (msgspec.DecodeError, RecursionError):
            continue  # what a model wrote needn't be JSON; most templates show a text as well
    return message


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed, however deep."""
    match value:
        case str():
            return change(value)
        case list():
            return [_each_text(each, change) for each in value]
        case dict():
            return {key: _each_text(each, change) for key, each in value.items()}
    return value


def _up_to(end: str, text: str) -> str:
    before, marker, _ = text.rpartition(end)
    if not marker:
        raise StepError(
            "the model's chat template doesn't show the assistant's last turn, which is to be continued: take another "
            "model, or a system that continues no turns"
        )
    return before.replace(end, "")


def _segments(text: str, controls: Mapping[str, str]) -> list[Segment]:
    if not controls:
        return [Segment(text)]
    parts: Iterable[str] = re.compile(f"([{''.join(controls)}])").split(text)
    return [Segment(controls.get(part, part), plain=part in controls) for part in parts if part]


# Control tokens in a prompt: a system's own words name them, and what reads like one in a paragraph is only quoted.


def divided(turn: Turn, controls: re.Pattern[str]) -> list[Segment]:
    """The segments of plain text."""
    (spans,) = quoted_spans((turn,), spans_of(controls))
    return [Segment(part, plain=at) for part, at in divided_at(turn.text, spans)]


def named_controls(turns: Iterable[Turn], stop: Iterable[str], controls: re.Pattern[str]) -> set[str]:
    """The control tokens that a system's own words name, or its stop strings, and that the model may write for it."""
    own = (piece.text for turn in turns for piece in turn.pieces if isinstance(piece, Text) and turn.role != "tool")
    return {control for text in (*own, *stop) for control in controls.findall(text)}
