"""Adapter of the port: packs prompts, and has a server continue them."""

from collections.abc import Sequence
from functools import partial
from typing import Any, get_args
from weakref import finalize

from msgspec.structs import replace

from cotrail.core.calls import Call
from cotrail.core.generation import Capability, Sampling
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt, plain
from cotrail.core.results import Generated
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.packing import output_tokens, pack
from cotrail.engines.language_models.probabilities import check_fits
from cotrail.engines.language_models.result import generated
from cotrail.engines.language_models.served.capabilities import endpoint_lacks
from cotrail.engines.language_models.served.client import ServerClient
from cotrail.engines.language_models.served.control_tokens import BREAK, broken, cut_controls
from cotrail.engines.language_models.served.event_loop import EventLoopThread
from cotrail.engines.language_models.served.probabilities import choice_shares, probabilities_request
from cotrail.engines.language_models.served.prompt_fields import Template, chat_fields
from cotrail.engines.language_models.served.request import (
    PATHS,
    completion_request,
    reserved_tokens,
    stop_strings,
    tokenizer_request,
)
from cotrail.engines.language_models.served.scores import joined_scores
from cotrail.engines.language_models.served.stream import ServerStream
from cotrail.engines.language_models.served.tokenizer import Counter, Tokenized
from cotrail.engines.language_models.stop_conditions import before_stop, kept
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.engines.language_models.tool_calls import split_calls
from cotrail.engines.model_identity import model_identity
from cotrail.errors import StepError


class ServedModel:
    """A model that a server runs; no request is sent before the first prompt.

    endpoint, name: its address, and the identity's name. Raises BlockedError where its API key isn't set, and
    InputError where its chat template can't be used.
    """

    def __init__(self, endpoint: Endpoint, name: str) -> None:
        self._endpoint = endpoint
        self._identity = model_identity(name, endpoint.digest)
        self._template = None if endpoint.chat_template is None else Template(endpoint)
        lacking = {capability: endpoint_lacks(endpoint, capability) for capability in get_args(Capability)}
        self._lacking = {capability: reason for capability, reason in lacking.items() if reason}
        self._client = ServerClient(endpoint)
        self._event_loop = EventLoopThread(self._client)
        # No bound method, which would refer to this model: it would then be freed by the garbage collector only.
        self._counter = Counter(partial(_tokenized, endpoint, self._client, self._event_loop))
        # The thread would otherwise outlive the model.
        finalize(self, self._event_loop.close)

    @property
    def identity(self) -> str:
        """See `LanguageModel`."""
        return self._identity

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        """See `LanguageModel`; raises BlockedError where the server's key or address has to be corrected.

        Raises StepError where the server can't do what is asked for.
        """
        endpoint = self._endpoint
        for capability in sorted(request.needs & self._lacking.keys()):
            raise StepError(f"the model {endpoint.model} {self._lacking[capability]}")
        room = endpoint.context - reserved_tokens(endpoint.api)
        packed = pack(request.prompt, self._counter.count, room, request.max_tokens, self._tokens)
        most = output_tokens(self._tokens(packed), room, request.max_tokens)
        body = completion_request(
            endpoint, self._counter.dialect, self._shown(packed), replace(request, max_tokens=most)
        )
        stream = ServerStream(
            request.until,
            request.stop,
            opens=endpoint.api == "chat" and not _continues_a_turn(packed),
            echo=_echo(endpoint, packed),
            knows_stop=bool(stop_strings(endpoint.api, request)),
        )
        self._complete(body, stream, cancellation)
        ended, stop = stream.ending()
        text, calls = self._with_calls(request, stream)
        return generated(
            packed,
            text,
            stream.text,
            stream.counts or TokenCounts(prompt=self._tokens(packed), cached=0, generated=stream.pieces),
            ended,
            stop,
            calls,
            joined_scores(endpoint, stream.events) if request.scored else (),
        )

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """See `LanguageModel`; StepError where the server returns too few of them, BlockedError as above."""
        endpoint, stream = self._endpoint, ServerStream("sentence")
        prompt = Prompt(turns=(plain(text),))
        check_fits(self._tokens(prompt) + 1, endpoint.context - reserved_tokens(endpoint.api))
        request = GenerationRequest(prompt, "sentence", 1, Sampling(temperature=1.0))
        body = completion_request(endpoint, self._counter.dialect, self._shown(prompt), request)
        self._complete(body | probabilities_request(endpoint.api, self._counter.dialect), stream)
        return choice_shares(endpoint, stream.logprobs, choices)

    def interrupt(self) -> None:
        """See `LanguageModel`."""
        self._event_loop.interrupt()

    def _with_calls(self, request: GenerationRequest, stream: ServerStream) -> tuple[str, tuple[Call, ...]]:
        """What the step asked for outside of calls of tools, and the calls."""
        if self._template is None or not request.prompt.tools:
            return stream.kept(), stream.calls
        outside, calls = split_calls(before_stop(stream.text, request.stop)[0])
        return kept(outside, request.until), calls

    def _tokens(self, prompt: Prompt) -> int:
        """The tokens of a prompt; for those of a chat's messages it is an estimate, since they count as JSON."""
        return self._counter.count(BREAK.join(self._pieces(prompt)))

    def _pieces(self, prompt: Prompt) -> list[str]:
        """The prompt as text, cut where it looks like control tokens and holds none."""
        if prompt.has_roles and self._template is not None:
            return self._template.pieces(prompt)
        return cut_controls(prompt.render())

    def _shown(self, prompt: Prompt) -> dict[str, Any]:
        """The fields of a body that hold the prompt."""
        if self._endpoint.api == "chat":
            return chat_fields(prompt, self._endpoint.continues)
        pieces = self._pieces(prompt)
        tokens = self._counter.tokens(pieces) if len(pieces) > 1 else None
        return {"prompt": BREAK.join(pieces) if tokens is None else tokens}

    def _complete(self, body: dict[str, Any], stream: ServerStream, cancellation: Cancellation | None = None) -> None:
        self._event_loop.run(partial(self._client.complete, PATHS[self._endpoint.api], body, stream), cancellation)


def _continues_a_turn(prompt: Prompt) -> bool:
    return prompt.has_roles and prompt.continues_last_turn


def _echo(endpoint: Endpoint, prompt: Prompt) -> str:
    """What the server may repeat before it continues: Mistral's writes the whole message that it continues."""
    return broken(prompt.turns[-1].text) if endpoint.continues == "prefix" and _continues_a_turn(prompt) else ""


def _tokenized(
    endpoint: Endpoint,
    client: ServerClient,
    event_loop: EventLoopThread,
    text: str,
    begins: bool,  # noqa: FBT001 - called by position
) -> Tokenized | None:
    return event_loop.run(partial(client.tokenize, tokenizer_request(endpoint, text, begins=begins)))
