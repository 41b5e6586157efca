"""The adapter: packs prompts, and has an engine continue them."""

from functools import lru_cache
from pathlib import Path

from cotrail.actions import Generated, Until
from cotrail.errors import EmptyGenerationError
from cotrail.generation.generator import Profile, Sampling
from cotrail.generation.identity import model_identity, weights_digest
from cotrail.generation.transformers.loading import Loaded, load
from cotrail.generation.transformers.request import Request
from cotrail.generation.transformers.scheduler import Engine, Scheduler
from cotrail.prompting.packing import pack
from cotrail.prompting.prompt import Prompt

CACHED_COUNTS = 4096
"""How many token counts of prompt parts are remembered."""

LONGEST_PART = 20_000
"""Longer texts, in characters, are whole prompts: their token counts aren't remembered."""


class TransformersGenerator:
    """A model that transformers loads.

    path, name: the folder that it was saved to, or a GGUF file; and what the identity calls it.
    profile: `fast` works on up to `slots` prompts at once and reuses what it read before; `deterministic` works on one
        prompt at a time, and reuses only what changes no bit of the result (`exact`).
    context: how many tokens a prompt and its continuation may take together, or the prompt alone where the model has
        an encoder.
    """

    def __init__(self, path: Path, name: str, profile: Profile, slots: int, context: int) -> None:
        self._identity = model_identity(name, weights_digest(path, context, "transformers"))
        loaded = load(path)
        self._vocabulary = loaded.vocabulary
        self._encoder_decoder = loaded.encoder_decoder
        self._context = context
        self._scheduler = Scheduler(_engine(loaded, profile, slots, context))
        self._count_part = lru_cache(maxsize=CACHED_COUNTS)(self._count)

    @property
    def identity(self) -> str:
        """See `Generator`."""
        return self._identity

    def generate(self, prompt: Prompt, until: Until, max_tokens: int, sampling: Sampling) -> Generated:
        """See `Generator`."""
        packed = pack(prompt, self.count_tokens, self._context, 0 if self._encoder_decoder else max_tokens)
        request = self._request(packed, until, max_tokens, sampling)
        self._scheduler.submit(request)
        request.future.result()
        if not request.kept:
            raise EmptyGenerationError(f"{self._identity} wrote nothing but {request.text!r}")
        return Generated(
            text=request.kept,
            raw=request.text,
            demonstrations=len(packed.demonstrations.items),
            paragraphs=len(packed.paragraphs),
            first_demonstration=packed.first_demonstration,
            prompt_digest=packed.digest,
            prompt_tokens=len(request.tokens),
            cached_prompt_tokens=request.cached,
            generated_tokens=len(request.written),
            drafted_tokens=request.drafted,
            accepted_tokens=request.accepted,
        )

    def interrupt(self) -> None:
        """See `Generator`."""
        self._scheduler.interrupt()

    def count_tokens(self, text: str) -> int:
        """How many tokens a text takes, exactly; the counts of prompt parts are remembered."""
        return self._count(text) if len(text) > LONGEST_PART else self._count_part(text)

    def _count(self, text: str) -> int:
        return len(self._vocabulary.encode(text))

    def _request(self, packed: Prompt, until: Until, max_tokens: int, sampling: Sampling) -> Request:
        shared = self.count_tokens(packed.demonstrations.text) if packed.demonstrations.items else 0
        tokens = self._vocabulary.encode(packed.render())
        chain = "\n".join([packed.question, *packed.sentences]) if until == "sentence" else ""
        return Request(tokens, self._vocabulary, until, max_tokens, sampling, shared, chain)


def _engine(loaded: Loaded, profile: Profile, slots: int, context: int) -> Engine:
    if loaded.encoder_decoder:
        from cotrail.generation.transformers.seq2seq import Seq2SeqEngine

        return Seq2SeqEngine(loaded.model, profile, slots, context)
    from cotrail.generation.transformers.causal import CausalEngine

    return CausalEngine(loaded.model, profile, slots, context)
