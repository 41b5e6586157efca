"""What an engine wrote, as the result of a step."""

from msgspec import Struct

from cotrail.common.storable_text import storable
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated


class Tokens(Struct, frozen=True):
    """The tokens of a generation, as in `Generated`."""

    prompt: int
    cached: int
    generated: int
    drafted: int = 0
    accepted: int = 0


def generated(packed: Prompt, kept: str, raw: str, tokens: Tokens) -> Generated:
    """The result of continuing a packed prompt; `kept` is what the step asked for, of all that was written, `raw`."""
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
