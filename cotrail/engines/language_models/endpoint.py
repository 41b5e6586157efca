"""Endpoint of a model behind a server, as `models.toml` describes it."""

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from cotrail.common.canonical_json import canonical
from cotrail.common.server_addresses import read_address
from cotrail.common.unusual_fields import unusual
from cotrail.core.generation import HandsBack
from cotrail.engines.language_models.thinking import Thinking, Thinks
from cotrail.errors import InputError

Api = Literal["completions", "chat", "responses", "anthropic", "gemini"]
"""The request sent to the server: to continue the prompt as it stands, or to answer messages, in the form of OpenAI's
chat completions or responses, of Anthropic's messages, or of Gemini's `generateContent`. A prompt without roles is one
message."""

Continues = Literal["vllm", "llama.cpp", "prefix"]
"""How a chat server is told to continue the assistant's last message. `vllm`: by `continue_final_message`, which SGLang
takes too. `llama.cpp`: it needs no telling. `prefix`: by `prefix` in that message, as Mistral and DeepSeek do."""

Absent = Literal["scores", "tools", "sampling", "structure"]
"""Capabilities that one server has and another hasn't, whatever cotrail sends."""

Omitted = Literal["temperature", "top_p", "seed", "stop", "logprobs", "stream", "stream_options"]
"""Fields of a request that a server refuses, and that it is therefore not sent."""

BatchApi = Literal["openai", "anthropic", "mistral"]
"""The form of a server's batch API."""

Rate = Annotated[int, Meta(ge=1)] | None


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an account may use of a model in a minute; None for what isn't limited, or is said by the server."""

    requests: Rate = None
    input_tokens: Rate = None
    output_tokens: Rate = None


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

VariableName = Annotated[
    str,
    Meta(
        pattern="^[A-Z_][A-Z0-9_]*$",
        description="the name of an environment variable in capitals, as GPU1_KEY, which holds the key",
    ),
]

_LATER = (
    *("continues", "bos", "eos", "thinks", "thought_tokens", "effort", "template", "hands_back"),
    *("limit_field", "omits", "extra"),
)

IN_FLIGHT = 256
"""How many requests a server is sent at once unless its table says otherwise."""

VERSION = "/v1"
"""End of an endpoint's path; servers offer what isn't OpenAI's protocol beside this part."""

GEMINI_VERSION = "/v1beta"
"""The same of Gemini's."""

LEAST_BUDGET = 1024
"""The least budget of thoughts that Anthropic's API takes, in tokens."""


class Endpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Address of a served model, and the limits of requests to it.

    url: where the API begins, e.g. `http://gpu1:8000/v1`.
    model: the server's name for the model.
    context: tokens that a prompt and its continuation may take together.
    api: see `Api`; chat models follow a prompt's demonstrations less closely.
    continues: see `Continues`; None where the server can't, or nothing is known of it.
    chat_template: a file with the model's chat template in Jinja, by which completions are asked for conversations.
    bos, eos: what the template shows as `bos_token` and `eos_token`. Servers put the first themselves.
    without: what the server can't do, so that runs that need it are refused as they are submitted.
    key_variable: the environment variable, in capitals, that holds the API key. The key itself is written nowhere.
    revision: a free description of the weights behind the name, since what a server holds can't be digested.
    in_flight: the most requests under way at once, further ones wait; None for 256, and for as many as its account's
        limits let under way where a provider runs the model.
    timeout_seconds: how long the server may be silent, before its first token and between tokens.
    thinks, thought_tokens, template, hands_back: see `Thinking`; effort: how much it thinks, in the server's words.
    limit_field: the field that bounds what is written, where it isn't `max_tokens`.
    omits: see `Omitted`; extra: further fields of each request.
    account: what the provider's limits belong to, by default the variable of the key and the host.
    limits: see `Limits`; batch: see `BatchApi`, None where there is none; price: by default that of a published table.
    """

    url: str
    model: Annotated[str, Meta(min_length=1)]
    context: ContextLength
    api: Api = "completions"
    continues: Continues | None = None
    chat_template: Path | None = None
    bos: str = ""
    eos: str = ""
    without: tuple[Absent, ...] = ()
    key_variable: VariableName | None = None
    revision: str = ""
    in_flight: Annotated[int, Meta(ge=1)] | None = None
    timeout_seconds: Annotated[float, Meta(gt=0)] = 300.0
    thinks: Thinks | None = None
    thought_tokens: Annotated[int, Meta(ge=0)] = 0
    effort: str = ""
    template: dict[str, Any] = {}
    hands_back: HandsBack = "calls"
    limit_field: str = ""
    omits: tuple[Omitted, ...] = ()
    extra: dict[str, Any] = {}
    account: str = ""
    limits: Limits | None = None
    batch: BatchApi | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        try:
            address = read_address(self.url, ("http", "https"))
        except ValueError as error:
            raise ValueError(f"the url isn't that of a server: {error}; it reads like http://host:8000/v1") from None
        if address.user is not None or address.query:
            raise ValueError(
                "the url holds more than an address; a key belongs into the variable that key_variable names"
            )
        if not address.host:
            raise ValueError("the url isn't that of a server; it reads like http://host:8000/v1")
        if not address.path.endswith(self._version):
            raise ValueError(f"the url doesn't end in {self._version}")
        if self.continues and self.api == "completions":
            raise ValueError('continues is for api = "chat": a completion continues whatever stands last')
        if self.chat_template and self.api != "completions":
            raise ValueError('chat_template is for api = "completions": a chat server has its own')
        if (self.bos or self.eos) and not self.chat_template:
            raise ValueError("bos and eos are for a chat_template")
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
        # What came later isn't in the digest where it is unset, so that older tables keep theirs.
        if source := self.chat_template_source:
            decides["chat_template"] = source
        decides |= unusual(self, *_LATER)
        return hashlib.sha256(canonical(decides)).hexdigest()

    @property
    def thinking(self) -> Thinking:
        """How the model thinks."""
        return Thinking(
            thinks=self.thinks,
            thought_tokens=self.thought_tokens,
            template=self.template,
            hands_back=self.hands_back,
        )

    @property
    def is_hosted(self) -> bool:
        """Return whether a provider runs the model, which charges for it and limits its use."""
        told = self.account or self.limits or self.price or self.batch
        return bool(told) or (self.key_variable is not None and self.url.startswith("https:"))

    @property
    def most_in_flight(self) -> int | None:
        """The most requests under way at once; None where only the account's limits bound them."""
        return self.in_flight or (None if self.is_hosted else IN_FLIGHT)

    @property
    def account_name(self) -> str:
        """What the provider's limits belong to."""
        host = read_address(self.url, ("http", "https")).host
        return self.account or f"{self.key_variable}@{host}"

    @property
    def beside(self) -> str:
        """The address without its version."""
        return self.url.removesuffix(self._version)

    @property
    def _version(self) -> str:
        return GEMINI_VERSION if self.api == "gemini" else VERSION

    @property
    def chat_template_source(self) -> str:
        """The chat template itself, empty where there is none; raises InputError where its file can't be read."""
        if self.chat_template is None:
            return ""
        try:
            return self.chat_template.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the chat template {self.chat_template} can't be read: {error}") from error
