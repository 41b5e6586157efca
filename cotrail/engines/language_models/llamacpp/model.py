"""Adapter of the port: packs prompts, and has llama.cpp continue them in one of two profiles."""

from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

from cotrail.core.generation import Sampling
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest, Profile
from cotrail.core.results import Generated
from cotrail.engines.language_models.llamacpp import deterministic
from cotrail.engines.language_models.llamacpp.probabilities import ChoiceStream
from cotrail.engines.language_models.llamacpp.server import Server, TokenIds
from cotrail.engines.language_models.llamacpp.stream import LlamaCppStream
from cotrail.engines.language_models.llamacpp.tokenizer import LlamaCppTokenizer
from cotrail.engines.language_models.packing import output_tokens, pack
from cotrail.engines.language_models.probabilities import check_fits, first_tokens
from cotrail.engines.language_models.result import generated
from cotrail.engines.model_identity import model_identity, weights_digest

FAST: dict[str, Any] = {
    # Tokens of a prompt that are read between two chances to interrupt; larger batches are no faster on two cores.
    "n_batch": 512,
    # Room for prefixes that no slot holds at the moment, so that reason steps and readers, whose demonstrations differ,
    # can alternate without reading each other's demonstrations again.
    "cache_ram_mib": 2048,
    # A prompt takes over a slot if its text is at least this share of the prompt, otherwise the least recently used
    # slot. Questions of a run share less (their demonstrations), a question's next step shares more.
    "slot_prompt_similarity": 0.9,
}
"""Options of llama.cpp's server for the profile `fast`."""

SPARE_SLOTS = 2
"""Slots of `fast` beyond the active ones: they keep the prefixes of questions that wait for their paragraphs."""


def fast_server(path: Path, slots: int, context: int) -> Server:
    """A server of the profile `fast` for that many prompts at once."""
    return Server(path, slots + SPARE_SLOTS, context, FAST)


class LlamaCppModel:
    """A GGUF model.

    path, name: its file, and the identity's name.
    profile: `fast` works on `slots` prompts at once and reuses the longest prefix that a slot has read before;
        `deterministic` works on one prompt at a time, and reuses only what changes no bit of the result.
    context: tokens that a prompt and its continuation may take together.
    """

    def __init__(self, path: Path, name: str, profile: Profile, slots: int, context: int) -> None:
        self._identity = model_identity(name, weights_digest(path, context))
        self._context = context
        self._interrupted = Event()
        if profile == "fast":
            self._server, self._deterministic = fast_server(path, slots, context), None
        else:
            self._server = Server(path, 1, context, deterministic.OPTIONS)
            self._deterministic = deterministic.DeterministicSlot(self._server)
        self._tokenizer = LlamaCppTokenizer(self._server, path)
        self.count_tokens = self._tokenizer.count

    @property
    def identity(self) -> str:
        """See `LanguageModel`."""
        return self._identity

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        """See `LanguageModel`."""
        encode = self._tokenizer.encode
        packed = pack(
            request.prompt, self.count_tokens, self._context, request.max_tokens, lambda prompt: len(encode(prompt))
        )
        wanted = cancellation or Cancellation()
        stream = LlamaCppStream(
            request.until,
            lambda: self._interrupted.is_set() or wanted.cancelled,
            request.stop,
            scored=request.scored,
        )
        shared = self.count_tokens(packed.shared) if self._deterministic else 0
        tokens = encode(packed)
        most = output_tokens(len(tokens), self._context, request.max_tokens)
        self._complete(tokens, shared, stream, most, request.sampling)
        text, calls = stream.kept_beside_calls() if packed.tools else (stream.kept(), ())
        return generated(packed, text, stream.text, stream.timings.counts, *stream.ending, calls, stream.scores)

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """See `LanguageModel`."""
        tokens = self._server.tokens(text)
        check_fits(len(tokens) + 1, self._context)
        # At temperature 1 the probabilities are the model's own; at 0 the likeliest token would have all.
        stream = ChoiceStream(first_tokens(self._server.tokens, text, choices), self._interrupted.is_set)
        self._complete(tokens, 0, stream, 1, Sampling(temperature=1.0))
        return stream.shares()

    def interrupt(self) -> None:
        """See `LanguageModel`."""
        self._interrupted.set()

    def _complete(
        self, tokens: TokenIds, shared: int, stream: LlamaCppStream, max_tokens: int, sampling: Sampling
    ) -> None:
        if self._deterministic is None:
            self._server.complete(tokens, stream, max_tokens, sampling)
        else:
            self._deterministic.complete(tokens, shared, stream, max_tokens, sampling)
