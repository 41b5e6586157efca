"""Requests of OpenAI's API, as far as they mean something to a reasoning system.

Fields that aren't here are ignored, as servers with this API do: what is generated is bounded by the system's settings
and not by `max_tokens`, and sampled by `temperature` and `seed` alone.
"""

from typing import Any

from msgspec import Struct, field

from cotrail.errors import InputError

PROBABILITIES = "message.output_text.logprobs"
"""What `include` of a response may name that no answer has; other things in it are ignored."""

NO_PROBABILITIES = "there are no log probabilities of answers; leave `{}` out"


class Part(Struct):
    """A part of a message's content."""

    type: str
    text: str | None = None


class Message(Struct):
    """A message; `type` tells messages from other items of a response's input."""

    content: str | list[Part] | None = None
    role: str = ""
    type: str = "message"

    @property
    def text(self) -> str:
        """Its text; raises InputError where it holds something else."""
        if not isinstance(self.content, list):
            return self.content or ""
        if other := next((part.type for part in self.content if part.text is None), None):
            raise InputError(f"a message has a part of type {other!r}; cotrail reads text alone")
        return "".join(part.text or "" for part in self.content)


class StreamOptions(Struct):
    """include_usage: whether the usage comes in a last chunk of its own."""

    include_usage: bool = False


class Format(Struct):
    """The form in which the answer is wanted."""

    type: str = "text"


class TextOptions(Struct):
    """The same of a response."""

    format: Format = field(default_factory=Format)


class AnyRequest(Struct, kw_only=True):
    """What both kinds of requests have."""

    model: str
    stream: bool = False
    temperature: float | None = None
    seed: int | None = None
    tools: list[Any] | None = None

    def check(self) -> None:
        """Raises InputError where it asks for what no system gives; ignoring it would give another thing."""
        if self.tools:
            raise InputError("`tools` of a request can't be called: systems have tools of their own; leave them out")


class ChatRequest(AnyRequest, kw_only=True):
    """A request for a chat completion."""

    messages: list[Message]
    stream_options: StreamOptions | None = None
    n: int | None = None
    logprobs: bool | None = None
    response_format: Format | None = None

    def check(self) -> None:
        """See `AnyRequest`."""
        super().check()
        _check_format(self.response_format)
        if (self.n or 1) != 1:
            raise InputError("`n` is 1: each answer is a question of its own; ask again for another")
        if self.logprobs:
            raise InputError(NO_PROBABILITIES.format("logprobs"))


class ResponseRequest(AnyRequest, kw_only=True):
    """A request for a response."""

    input: str | list[Message]
    instructions: str | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    text: TextOptions | None = None
    include: list[str] | None = None
    top_logprobs: int | None = None

    def check(self) -> None:
        """See `AnyRequest`."""
        super().check()
        _check_format(self.text.format if self.text else None)
        if self.top_logprobs or PROBABILITIES in (self.include or ()):
            raise InputError(NO_PROBABILITIES.format(f"top_logprobs` and `{PROBABILITIES}"))
        if self.previous_response_id:
            raise InputError("`previous_response_id` isn't known here: send the earlier turns in `input`")

    @property
    def messages(self) -> list[Message]:
        """Its messages, the instructions first; items of other kinds, such as reasoning, are left out."""
        given = [Message(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        told = [Message(role="system", content=self.instructions)] if self.instructions else []
        return told + [each for each in given if each.type == "message"]


def _check_format(wanted: Format | None) -> None:
    if wanted and wanted.type != "text":
        raise InputError(f"answers are plain text, and none can be held to a {wanted.type}; leave the format out")
