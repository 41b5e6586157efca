"""Endpoint of a model behind a server, as `models.toml` describes it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from cotrail.common.structs import canonical, common_fields, unusual
from cotrail.core.generation import HandsBack
from cotrail.engines.language_models.thinking import Thinking, Thinks
from cotrail.engines.server_address import ServerAddress
from cotrail.errors import InputError

Api = Literal["completions", "chat", "responses", "anthropic", "gemini"]
"""The request sent to the server: to continue the prompt as it stands, or to answer messages, in the form of OpenAI's
chat completions or responses, of Anthropic's messages, or of Gemini's `generateContent`. A prompt without roles is one
message."""

Continues = Literal["vllm", "llama.cpp", "prefix"]
"""How a chat server is made to continue the assistant's last message. `vllm`: by `continue_final_message`, which SGLang
takes too. `llama.cpp`: it needs no telling. `prefix`: by `prefix` in that message, as Mistral and DeepSeek do."""

Absent = Literal["scores", "tools", "sampling", "structure"]
"""Capabilities that one server has and another hasn't, whatever cotrail sends."""

Omitted = Literal["temperature", "top_p", "seed", "stop", "logprobs", "stream", "stream_options"]
"""Fields of a request that a server refuses, and that it is therefore not sent."""

BatchApi = Literal["openai", "anthropic", "mistral"]
"""The form of a server's batch API."""

_BATCHED: Mapping[BatchApi, tuple[Api, ...]] = {
    "openai": ("chat", "responses", "completions"),
    "anthropic": ("anthropic",),
    "mistral": ("chat", "completions"),
}

Money = Annotated[float, Meta(ge=0)]


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Price of a million tokens, in US dollars.

    cached, cache_written: of tokens read from the provider's cache and written to it, None for the price of `input`;
    batch: what of it is charged in a batch.
    """

    input: Money
    output: Money
    cached: Money | None = None
    cache_written: Money | None = None
    batch: Money = 0.5


ContextLength = Annotated[int, Meta(ge=1, examples=[8192])]

_SELDOM_SET = (
    *("continues", "bos", "eos", "thinks", "thought_tokens", "effort", "template", "hands_back"),
    *("limit_field", "omits", "extra"),
)

VERSION = "/v1"
"""End of most endpoints' paths; servers offer what isn't OpenAI's protocol outside this part."""

LEAST_BUDGET = 1024
"""The least budget of thoughts that Anthropic's API takes, in tokens."""


class Endpoint(ServerAddress, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Address of a served model, and the limits of requests to it.

    context: tokens that a prompt and its continuation may take together.
    api: see `Api`; chat models follow a prompt's demonstrations less closely.
    continues: see `Continues`; None where the server can't, or nothing is known of it.
    chat_template: a file with the model's chat template in Jinja, by which completions are asked for conversations.
    bos, eos: what the template shows as `bos_token` and `eos_token`. Servers put the first themselves.
    without: what the server can't do, so that runs that need it are refused as they are submitted.
    timeout_seconds: how long the server may be silent, before its first token and between tokens; 300 by default.
    thinks, thought_tokens, template, hands_back: see `Thinking`; effort: how much it thinks, in the server's words.
    limit_field: the field that bounds what is written, where it isn't `max_tokens`.
    omits: see `Omitted`.
    batch: see `BatchApi`, None where there is none; price: by default that of a published table.
    """

    context: ContextLength
    api: Api = "completions"
    continues: Continues | None = None
    chat_template: Path | None = None
    bos: str = ""
    eos: str = ""
    without: tuple[Absent, ...] = ()
    thinks: Thinks | None = None
    thought_tokens: Annotated[int, Meta(ge=0)] = 0
    effort: str = ""
    template: dict[str, Any] = field(default_factory=dict)
    hands_back: HandsBack = "calls"
    limit_field: str = ""
    omits: tuple[Omitted, ...] = ()
    batch: BatchApi | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.url.endswith("/"):
            raise ValueError("the url ends in a slash, which stands before what is asked for there: take it off")
        if self.continues and self.api == "completions":
            raise ValueError('continues is for api = "chat": a completion continues whatever stands last')
        if self.chat_template and self.api != "completions":
            raise ValueError('chat_template is for api = "completions": a chat server has its own')
        if (self.bos or self.eos) and not self.chat_template:
            raise ValueError("bos and eos are for a chat_template")
        if self.batch is not None and self.api not in _BATCHED[self.batch]:
            raise ValueError(f'the batch API {self.batch} is for api = "{_BATCHED[self.batch][0]}", not "{self.api}"')
        if self.api == "anthropic" and not self.effort and 0 < self.thought_tokens < LEAST_BUDGET:
            raise ValueError(f"thought_tokens is {LEAST_BUDGET} at least with Anthropic's API; or set effort instead")

    @property
    def digest(self) -> str:
        """The SHA-256 of everything known that decides an output. The address isn't part of it, as it may change.

        Raises InputError where the chat template can't be read.
        """
        decides: dict[str, Any] = {
            "model": self.model,
            "revision": self.revision,
            "api": self.api,
            "context": self.context,
        }
        if source := self.chat_template_source:
            decides["chat_template"] = source
        decides |= unusual(self, *_SELDOM_SET)
        return hashlib.sha256(canonical(decides)).hexdigest()

    @property
    def thinking(self) -> Thinking:
        """How the model thinks."""
        return Thinking(**common_fields(self, Thinking))

    @property
    def is_hosted(self) -> bool:
        return bool(self.price or self.batch) or super().is_hosted

    @property
    def root(self) -> str:
        """The address without its version, where it has one."""
        return self.url.removesuffix(VERSION)

    @property
    def for_long_texts(self) -> str:
        return (
            f"the list of models gives {self.model} a context of {self.context} tokens: give it the server's, or less "
            "where the server doesn't count tokens"
        )

    @property
    def chat_template_source(self) -> str:
        """The chat template itself, empty where there is none; raises InputError where its file can't be read."""
        if self.chat_template is None:
            return ""
        try:
            return self.chat_template.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the chat template {self.chat_template} can't be read: {error}") from error
