"""Adapter of the port: packs prompts, and has a server continue them."""

from collections.abc import Sequence
from functools import partial
from typing import Any
from weakref import finalize

from cotrail.core.generation import Sampling
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.results import Generated
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.openai.client import OpenAIClient
from cotrail.engines.language_models.openai.event_loop import EventLoopThread
from cotrail.engines.language_models.openai.probabilities import choice_shares, probabilities_request
from cotrail.engines.language_models.openai.request import PATHS, completion_request, reserved_tokens, tokenizer_request
from cotrail.engines.language_models.openai.stream import OpenAIStream
from cotrail.engines.language_models.openai.tokenizer import Counter, Tokenized
from cotrail.engines.language_models.packing import pack
from cotrail.engines.language_models.probabilities import check_fits
from cotrail.engines.language_models.result import TokenCounts, generated
from cotrail.engines.model_identity import model_identity


class OpenAIModel:
    """A model that a server runs; no request is sent before the first prompt.

    endpoint, name: its address, and the identity's name. Raises BlockedError where its API key isn't set.
    """

    def __init__(self, endpoint: Endpoint, name: str) -> None:
        self._endpoint = endpoint
        self._identity = model_identity(name, endpoint.digest)
        self._client = OpenAIClient(endpoint)
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
        """See `LanguageModel`; raises BlockedError where the server's key or address has to be corrected."""
        endpoint = self._endpoint
        packed = pack(
            request.prompt, self._counter.count, endpoint.context - reserved_tokens(endpoint.api), request.max_tokens
        )
        text, stream = packed.render(), OpenAIStream(request.until, endpoint.api)
        body = completion_request(
            endpoint, self._counter.dialect, text, request.until, request.max_tokens, request.sampling
        )
        self._complete(body, stream, cancellation)
        tokens = stream.counts or TokenCounts(prompt=self._counter.count(text), cached=0, generated=stream.pieces)
        return generated(packed, stream.kept(), stream.text, tokens)

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """See `LanguageModel`; StepError where the server returns too few of them, BlockedError as above."""
        endpoint, stream = self._endpoint, OpenAIStream("sentence")
        check_fits(self._counter.count(text) + 1, endpoint.context - reserved_tokens(endpoint.api))
        dialect = self._counter.dialect
        body = completion_request(endpoint, dialect, text, "sentence", 1, Sampling(temperature=1.0))
        self._complete(body | probabilities_request(endpoint.api, dialect), stream)
        return choice_shares(endpoint, stream.logprobs, choices)

    def interrupt(self) -> None:
        """See `LanguageModel`."""
        self._event_loop.interrupt()

    def _complete(self, body: dict[str, Any], stream: OpenAIStream, cancellation: Cancellation | None = None) -> None:
        self._event_loop.run(partial(self._client.complete, PATHS[self._endpoint.api], body, stream), cancellation)


def _tokenized(endpoint: Endpoint, client: OpenAIClient, event_loop: EventLoopThread, text: str) -> Tokenized | None:
    return event_loop.run(partial(client.tokenize, tokenizer_request(endpoint, text)))
