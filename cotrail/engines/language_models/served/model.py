"""Adapter of the port: packs prompts, and has a server continue them."""

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, get_args
from weakref import finalize

import msgspec
from msgspec.structs import replace

from cotrail.core.calls import Call
from cotrail.core.generation import Capability, Sampling
from cotrail.core.ports.batches import BatchAnswer, UnusableAnswer
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.ports.rate_limiter import Need, RateLimiter
from cotrail.core.prompts import Asked, Prompt, plain
from cotrail.core.results import Generated
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.packing import output_tokens, pack
from cotrail.engines.language_models.result import check_fits, generated
from cotrail.engines.language_models.served.capabilities import endpoint_lacks
from cotrail.engines.language_models.served.client import ServerClient, Witness
from cotrail.engines.language_models.served.event_loop import EventLoopThread
from cotrail.engines.language_models.served.pacing import Pacing
from cotrail.engines.language_models.served.probabilities import choice_shares, joined_scores, probabilities_request
from cotrail.engines.language_models.served.prompt_fields import (
    BREAK,
    Template,
    cut_controls,
    cut_quoted,
    reserved_tokens,
)
from cotrail.engines.language_models.served.protocols.protocol import WireProtocol
from cotrail.engines.language_models.served.refusals import reported_in
from cotrail.engines.language_models.served.request import Order, tokenizer_request
from cotrail.engines.language_models.served.stream import ServerStream, check_marks, counted, thought_of
from cotrail.engines.language_models.stop_conditions import kept_beside_calls
from cotrail.engines.language_models.thinking import Thinking, begins_inside
from cotrail.engines.language_models.thoughts import ThoughtSplitter
from cotrail.engines.language_models.token_counts import Counter, Dialect, TokenCounts, Tokenized
from cotrail.engines.model_folders import model_identity
from cotrail.errors import BlockedError, CotrailError, StepError

MOST_AROUND_TOKEN = 1000
"""Characters that a server writes around each token at most, of those whose streams are read to their ends."""


class ServedModel:
    """A model that a server runs; no request is sent before the first prompt; see `LanguageModel` and `TakesBatches`.

    endpoint, name: its address, and the identity's name; protocol: the one of its `api`.
    limiter: shares out what its account may use, where a provider runs it. witness: sees every response.
    Raises BlockedError where its API key isn't set, and InputError where its chat template can't be used.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        name: str,
        protocol: WireProtocol,
        limiter: RateLimiter,
        witness: Witness | None = None,
    ) -> None:
        self._endpoint = endpoint
        self.identity = model_identity(name, endpoint.digest)
        self._protocol = protocol
        # Nothing but a whole message shows whether a model thinks that isn't known to.
        self._seen_whole = endpoint.api != "chat" or endpoint.thinks is not None
        self._template = None if endpoint.chat_template is None else Template(endpoint)
        lacking = {capability: endpoint_lacks(endpoint, capability) for capability in get_args(Capability)}
        self._lacking = {capability: reason for capability, reason in lacking.items() if reason}
        self._pacing = Pacing(endpoint, limiter) if endpoint.is_hosted else None
        learn = self._pacing.learn if self._pacing else None
        self._client = ServerClient(endpoint, protocol.headers, learn, witness)
        self._event_loop = EventLoopThread(self._client)
        # No bound method, which would refer to this model: it would then be freed by the garbage collector only.
        ask = partial(_tokenized, endpoint, self._client, self._event_loop) if protocol.has_tokenizer else _uncounted
        self._counter = Counter(ask)
        # The thread would otherwise outlive the model.
        finalize(self, self._event_loop.close)

    @property
    def dialect(self) -> Dialect:
        """The server's extensions of OpenAI's protocol, known after the first request."""
        return self._counter.dialect

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        """See `LanguageModel`; raises BlockedError where the server's key, address or table has to be corrected.

        So it does where the server has nothing of what every request of the run asks for. StepError: where it refuses.
        """
        order = self._order(request)
        if self._pacing is not None:
            with self._pacing.asking():
                return self._paced(self._pacing, order, request, cancellation)
        stream = self._stream(order, request, cancellation)
        self._complete(self._protocol.body(order), stream, cancellation)
        return self._result(order, request, stream)

    @property
    def has_batches(self) -> bool:
        return self._endpoint.batch is not None

    def batch_body(self, request: GenerationRequest) -> str:
        return msgspec.json.encode(self._protocol.body(self._order(request, streams=False))).decode()

    def batch_result(self, request: GenerationRequest, answer: BatchAnswer) -> Generated:
        # The order may take a request to the server's tokenizer, whose failure says nothing about the answer.
        order = self._order(request, streams=False)
        stream = self._stream(order, request)
        try:
            self._take_answer(stream, answer)
        except CotrailError as error:
            raise UnusableAnswer(error) from None
        return self._result(order, request, stream)

    def _take_answer(self, stream: ServerStream, answer: BatchAnswer) -> None:
        content = answer.body.encode()
        if answer.status != HTTPStatus.OK:
            raise self._client.refusal(answer.status, reported_in(content))
        self._client.take_whole(content, stream)

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """See `LanguageModel`; StepError where the server returns too few of them, BlockedError as above."""
        endpoint = self._endpoint
        self._check_lacking(frozenset({"scores"}))
        if endpoint.api not in ("completions", "chat"):
            raise StepError(f"{endpoint.url} returns no log probabilities: take a server of vLLM or llama.cpp")
        # Not the words of a system alone: it quotes what is judged.
        prompt = Prompt(turns=(plain(Asked(text)),))
        check_fits(self._tokens(prompt) + 1, endpoint.context - self._reserved)
        request = GenerationRequest(prompt, "sentence", 1, Sampling(temperature=1.0))
        dialect = self._counter.dialect
        body = self._protocol.body(
            Order(endpoint=endpoint, dialect=dialect, prompt=prompt, request=request, text=self._text(prompt))
        )
        stream = ServerStream(self._protocol.reader(), "sentence")
        self._complete(body | probabilities_request(endpoint.api, dialect), stream)
        return choice_shares(endpoint, stream.logprobs, choices)

    def interrupt(self) -> None:
        self._event_loop.interrupt()

    def _paced(
        self, pacing: Pacing, order: Order, request: GenerationRequest, cancellation: Cancellation | None
    ) -> Generated:
        """The result of a request that is sent when its account may send it, and again where that was too early."""
        body, most = self._protocol.body(order), order.request.max_tokens
        need = Need(input_tokens=self._tokens(order.prompt), output_tokens=most)

        def sent() -> ServerStream:
            stream = self._stream(order, request, cancellation)
            self._complete(body, stream, cancellation)
            return stream

        stream, reserved = pacing.send(need, partial(self._event_loop.sleep, cancellation=cancellation), sent)
        result = self._result(order, request, stream)
        # Anthropic's limits leave out what was read from its cache.
        uncounted = result.cached_prompt_tokens if self._endpoint.api == "anthropic" else 0
        used = Need(input_tokens=result.prompt_tokens - uncounted, output_tokens=result.generated_tokens)
        pacing.settle(need, reserved, used)
        return result

    def _order(self, request: GenerationRequest, *, streams: bool = True) -> Order:
        """The request with its prompt packed, and with the tokens of thoughts."""
        endpoint, thinking = self._endpoint, self._thinking
        self._check_lacking(request.needed_capabilities)
        room = endpoint.context - self._reserved
        wanted = request.max_tokens + thinking.thought_tokens
        prompt = request.prompt.handing_back(thinking.hands_back)
        packed = pack(prompt, self._counter.count, room, wanted, self._tokens)
        # Thoughts and text share one limit in requests, so that both are in what the context has left.
        most = output_tokens(self._tokens(packed), room, wanted)
        return Order(
            endpoint=endpoint,
            dialect=self._counter.dialect,
            prompt=packed,
            request=replace(request, max_tokens=most),
            text=self._text(packed) if endpoint.api == "completions" else "",
            streams=streams and "stream" not in endpoint.omits,
        )

    def _stream(
        self, order: Order, request: GenerationRequest, cancellation: Cancellation | None = None
    ) -> ServerStream:
        endpoint, packed = self._endpoint, order.prompt
        return ServerStream(
            self._protocol.reader(),
            request.until,
            request.stop,
            opens=endpoint.api != "completions" and not _continues_a_turn(packed),
            echo=_echo(endpoint, packed),
            knows_stop=bool(self._protocol.stop_strings(endpoint, order.request)),
            splitter=self._splitter(order),
            verbatim=request.scored,
            reads_on=MOST_AROUND_TOKEN * order.request.max_tokens if self._is_metered or not self._seen_whole else 0,
            listener=cancellation.listener if cancellation else None,
        )

    def _result(self, order: Order, request: GenerationRequest, stream: ServerStream) -> Generated:
        endpoint = self._endpoint
        ended, stop = stream.ending()
        # Once is enough: from then on, streams of servers that charge nothing are closed early.
        self._seen_whole = self._seen_whole or not stream.was_cut
        text, calls = self._with_calls(request, stream)
        counts = stream.counts or TokenCounts(
            prompt_tokens=self._tokens(order.prompt),
            cached_prompt_tokens=0,
            generated_tokens=stream.pieces,
            estimated=True,
        )
        counts = counted(stream, counts)
        result = generated(
            order.prompt,
            text,
            stream.text,
            counts,
            ended,
            stop,
            calls,
            joined_scores(endpoint, stream.events) if request.scored else (),
            thought_of(self._thinking, stream, counts, calls),
            stream.served_by,
        )
        check_marks(endpoint, stream.text_read, result)
        return result

    @property
    def _thinking(self) -> Thinking:
        return self._endpoint.thinking

    @property
    def _is_metered(self) -> bool:
        """Whether the server charges for what it writes: closing its stream would hide how much that was."""
        if not self._protocol.has_tokenizer:
            return True
        return self._endpoint.key_variable is not None and self._counter.dialect == "openai"

    @property
    def _reserved(self) -> int:
        return reserved_tokens(self._endpoint.api)

    def _splitter(self, order: Order) -> ThoughtSplitter | None:
        """What tells thoughts from text, where both are in the same field."""
        match self._thinking.thinks:
            case "inside":
                return ThoughtSplitter(inside=True, quotes=True)
            case "tags" if self._template is not None and order.prompt.has_roles:
                inside = begins_inside("".join(self._template.pieces(order.prompt)))
                return ThoughtSplitter(inside=inside, quotes=True)
            case "tags":
                return ThoughtSplitter(waits=True, ends=self._endpoint.api != "completions", quotes=True)
        return None

    def _check_lacking(self, needs: frozenset[Capability]) -> None:
        for capability in sorted(needs & self._lacking.keys()):
            raise BlockedError(f"the model {self._endpoint.model} {self._lacking[capability]}")

    def _with_calls(self, request: GenerationRequest, stream: ServerStream) -> tuple[str, tuple[Call, ...]]:
        """What the step asked for outside of calls of tools, and the calls."""
        if self._template is None or not request.prompt.tools:
            return stream.kept(), stream.calls
        return kept_beside_calls(stream.text, request.until, request.stop)

    def _tokens(self, prompt: Prompt) -> int:
        """The tokens of a prompt; for those of a chat's messages it is an estimate, since they count as JSON."""
        return self._counter.count(BREAK.join(self._pieces(prompt)))

    def _pieces(self, prompt: Prompt) -> list[str]:
        """The prompt as text, cut where it looks like control tokens and holds none."""
        if not prompt.has_roles:
            return cut_quoted(prompt)[0]
        return cut_controls(prompt.render()) if self._template is None else self._template.pieces(prompt)

    def _text(self, prompt: Prompt) -> str | list[int]:
        pieces = self._pieces(prompt)
        tokens = self._counter.tokens(pieces) if len(pieces) > 1 else None
        return BREAK.join(pieces) if tokens is None else tokens

    def _complete(self, body: dict[str, Any], stream: ServerStream, cancellation: Cancellation | None = None) -> None:
        streams = "stream" not in self._endpoint.omits
        path = self._protocol.path(self._endpoint, streams=streams)
        # Somebody who listens waits for the answer: it doesn't wait for those of evaluations.
        ahead = cancellation is not None and cancellation.listener is not None
        work = partial(self._client.complete, path, body, stream, streams=streams, ahead=ahead)
        self._event_loop.run(work, cancellation)


def _continues_a_turn(prompt: Prompt) -> bool:
    return prompt.has_roles and prompt.continues_last_turn


def _echo(endpoint: Endpoint, prompt: Prompt) -> str:
    """What the server may repeat before it continues: Mistral's writes the whole message that it continues."""
    return BREAK.join(cut_quoted(prompt)[-1]) if endpoint.continues == "prefix" and _continues_a_turn(prompt) else ""


def _uncounted(text: str, begins: bool) -> None:  # noqa: FBT001 - as `_tokenized`
    """No tokens: the provider has no tokenizer to ask."""


def _tokenized(
    endpoint: Endpoint,
    client: ServerClient,
    event_loop: EventLoopThread,
    text: str,
    begins: bool,  # noqa: FBT001 - called by position
) -> Tokenized | None:
    return event_loop.run(
        partial(client.tokenize, f"{endpoint.root}/tokenize", tokenizer_request(endpoint, text, begins=begins))
    )
