"""Scripted entailer: returns the judgements of a script."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.entailer import EntailmentPair, entailed
from cotrail.core.results import Entailed
from cotrail.engines.script_files import ScriptedEngine

Probability = Annotated[float, Meta(ge=0, le=1)]


class Judgement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two probabilities; the rest is that of neutral."""

    entailment: Probability = 0.0
    contradiction: Probability = 0.0

    def __post_init__(self) -> None:
        if self.entailment + self.contradiction > 1:
            raise ValueError("the probabilities add up to more than 1")

    @property
    def entailed(self) -> Entailed:
        """All three probabilities."""
        return entailed(self.entailment, 1 - self.entailment - self.contradiction, self.contradiction)


class EntailmentScript(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    judgements: by a premise, and then by a hypothesis. A premise is named by its title, by its text, or by a piece of
        its text: the first that has the hypothesis counts, and of several pieces the longest.
    default: for pairs that the script doesn't contain.
    """

    judgements: dict[str, dict[str, Judgement]] = {}
    default: Judgement = Judgement()

    def judgement(self, premise: Paragraph, hypothesis: str) -> Judgement:
        """The script's judgement of a hypothesis."""
        pieces = sorted((name for name in self.judgements if name in premise.text), key=len, reverse=True)
        candidates = (self.judgements.get(name, {}) for name in (premise.title, *pieces))
        return next((each[hypothesis] for each in candidates if hypothesis in each), self.default)


class ScriptedEntailer(ScriptedEngine[EntailmentScript]):
    """Judges by a script."""

    form = EntailmentScript

    def judge(self, pairs: Sequence[EntailmentPair]) -> list[Entailed]:
        """See `Entailer`."""
        return [self._script.judgement(pair.premise, pair.hypothesis).entailed for pair in pairs]
