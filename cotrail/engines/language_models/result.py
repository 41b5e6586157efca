"""Results of generations, from what an engine wrote."""

from msgspec import Struct

from cotrail.common.storable import storable
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated


class TokenCounts(Struct, frozen=True):
    """Token counts of a generation, as in `Generated`."""

    prompt: int
    cached: int
    generated: int
    drafted: int = 0
    accepted: int = 0


class LlamaCppTimings(Struct, frozen=True):
    """llama.cpp's token counts, in its own words: taken from the prefix cache, read, and written."""

    cache_n: int = 0
    prompt_n: int = 0
    predicted_n: int = 0

    @property
    def counts(self) -> TokenCounts:
        """The same counts under our names; the prompt includes its cached part."""
        return TokenCounts(prompt=self.cache_n + self.prompt_n, cached=self.cache_n, generated=self.predicted_n)


def generated(packed: Prompt, kept: str, raw: str, tokens: TokenCounts) -> Generated:
    """The result of continuing a packed prompt; raw: everything that was written, kept: what the step asked for."""
    return Generated(
        text=storable(kept),
        raw=storable(raw),
        demonstrations=len(packed.demonstrations.items),
        paragraphs=len(packed.paragraphs),
        first_demonstration=packed.first_demonstration,
        prompt_digest=packed.digest,
        prompt_tokens=tokens.prompt,
        cached_prompt_tokens=tokens.cached,
        generated_tokens=tokens.generated,
        drafted_tokens=tokens.drafted,
        accepted_tokens=tokens.accepted,
    )
