"""An entailer that says what a script says."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.entailer import EntailmentPair, entailed
from cotrail.core.results import Entailed
from cotrail.engines.script_files import read_script, script_identity

Probability = Annotated[float, Meta(ge=0, le=1)]


class Judgement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two probabilities; what they leave of 1 is that of neither."""

    entailment: Probability = 0.0
    contradiction: Probability = 0.0

    def __post_init__(self) -> None:
        if self.entailment + self.contradiction > 1:
            raise ValueError("the probabilities add up to more than 1")

    @property
    def entailed(self) -> Entailed:
        """All three of them."""
        return entailed(self.entailment, 1 - self.entailment - self.contradiction, self.contradiction)


class EntailmentScript(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    judgements: by a premise, and then by a hypothesis. A premise is named by its title, by its text, or by a piece of
        its text: the first of these that has the hypothesis counts, and of several pieces the longest.
    default: for what the script doesn't know.
    """

    judgements: dict[str, dict[str, Judgement]] = {}
    default: Judgement = Judgement()

    def judgement(self, premise: Paragraph, hypothesis: str) -> Judgement:
        """What the script says of a hypothesis."""
        pieces = sorted((name for name in self.judgements if name in premise.text), key=len, reverse=True)
        known = (self.judgements.get(name, {}) for name in (premise.title, *pieces))
        return next((each[hypothesis] for each in known if hypothesis in each), self.default)


class ScriptedEntailer:
    """Judges as a script says.

    source: a script, its file, or the same content as a mapping; name: what the identity calls it.
    """

    def __init__(self, source: EntailmentScript | Path | Mapping[str, object], name: str = "scripted") -> None:
        self._script = read_script(source, EntailmentScript)
        self._identity = script_identity(self._script, name)

    @property
    def identity(self) -> str:
        """See `Entailer`."""
        return self._identity

    def judge(self, pairs: Sequence[EntailmentPair]) -> list[Entailed]:
        """See `Entailer`."""
        return [self._script.judgement(pair.premise, pair.hypothesis).entailed for pair in pairs]
