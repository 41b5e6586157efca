"""How a model thinks before it writes its text, as its table in `models.toml` says."""

from typing import Any, Literal

from msgspec import Struct

from cotrail.core.generation import HandsBack

Thinks = Literal["field", "tags", "inside", "hidden", "no"]
"""Where a model's thoughts are. `field`: in fields of their own. `tags`: in its text, between marks. `inside`: so too,
where the prompt ends in the opening mark, so that the model writes only the closing one. `hidden`: nowhere, they are
only counted. `no`: it doesn't think."""


class Thinking(Struct, frozen=True, kw_only=True):
    """How a model thinks.

    thinks: None where nothing is known; an in-process model's template and vocabulary then tell, and thoughts in the
        text of a server's model are an error.
    thought_tokens: the most tokens of a thought, in addition to those of each step's text.
    template: variables of the model's chat template, such as `enable_thinking`.
    hands_back: which thoughts later prompts have.
    """

    thinks: Thinks | None = None
    thought_tokens: int = 0
    template: dict[str, Any] = {}
    hands_back: HandsBack = "calls"

    @property
    def may_think(self) -> bool:
        """Return whether the model thinks, as far as it is known."""
        return self.thinks not in (None, "no")
