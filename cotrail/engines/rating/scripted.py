"""Scripted rater: returns the scores of a script."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.rater import Rating
from cotrail.core.results import Rated
from cotrail.engines.script_files import read_script, script_identity


class RatingScript(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    scores: by a text, and then by another text, or a paragraph's title or text.
    default: for pairs that the script doesn't contain.
    """

    scores: dict[str, dict[str, float]] = {}
    default: float = 0.0


class ScriptedRater:
    """Scores by a script.

    source: a script, its file, or a mapping of the same content; name: the identity's name.
    """

    def __init__(self, source: RatingScript | Path | Mapping[str, object], name: str = "scripted") -> None:
        self._script = read_script(source, RatingScript)
        self._identity = script_identity(self._script, name)

    @property
    def identity(self) -> str:
        """See `Rater`."""
        return self._identity

    def rate(self, ratings: Sequence[Rating]) -> list[Rated]:
        """See `Rater`."""
        return [self._rated(each) for each in ratings]

    def _rated(self, rating: Rating) -> Rated:
        known, default = self._script.scores.get(rating.text, {}), self._script.default

        def score(paragraph: Paragraph) -> float:
            return known.get(paragraph.title, known.get(paragraph.text, default))

        return Rated(
            scores=(*(known.get(each, default) for each in rating.others), *(score(each) for each in rating.paragraphs))
        )
