"""Settings of ProbTree."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from cotrail.common.numbers import Positive
from cotrail.systems.parts.searching import SearchSettings

Sources = Literal["both", "closed", "open"]


class ProbTreeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ProbTree."""

    search: SearchSettings = SearchSettings()

    max_questions: Annotated[int, Meta(ge=1, le=100)] = 20
    """The most questions of a tree, its root among them; one that has no room for its parts isn't decomposed."""

    max_tree_tokens: Positive = 512
    """The most tokens of a decomposition."""

    max_tokens: Positive = 256
    """The most tokens of a chain of thought; one that is cut off counts as unknown."""

    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    """The temperature; the paper has no sampling."""

    sources: Sources = "both"
    """What answers are from beside the questions below: what the model knows (`closed`), paragraphs that are searched
    for (`open`), or `both`."""

    @property
    def closed(self) -> bool:
        """Return whether questions are answered from what the model knows."""
        return self.sources != "open"

    @property
    def open(self) -> bool:
        """Return whether questions are answered from paragraphs."""
        return self.sources != "closed"
