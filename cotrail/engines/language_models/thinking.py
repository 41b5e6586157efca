"""How a model thinks before it writes its text, as its table in `models.toml` says."""

import hashlib
from typing import Any, Literal

from msgspec import Struct

from cotrail.common.canonical_json import canonical
from cotrail.common.unusual_fields import unusual
from cotrail.core.generation import HandsBack, ThoughtsKind

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

    def takes_back(self, *, has_calls: bool) -> bool:
        """Return whether later prompts have the thought of a turn; has_calls: whether tools were called in it."""
        return self.hands_back == "all" or (self.hands_back == "calls" and has_calls)

    def added_to(self, digest: str) -> str:
        """The digest of a model with what decides how it thinks; the same digest where nothing of it is set."""
        set_ = unusual(self, *self.__struct_fields__)
        return hashlib.sha256(digest.encode() + canonical(set_)).hexdigest() if set_ else digest


NO_THINKING = Thinking()
"""What a table says that says nothing of thoughts."""


class Thought(Struct, frozen=True, kw_only=True):
    """What a model thought; see `thoughts`, `thoughts_are` and `carried` of `Generated`."""

    text: str = ""
    kind: ThoughtsKind = ""
    carried: str = ""


NO_THOUGHT = Thought()
