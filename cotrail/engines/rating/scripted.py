"""Scripted rater: returns the scores of a script."""

from collections.abc import Sequence

from msgspec import Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.rater import Rating
from cotrail.core.results import Rated
from cotrail.engines.script_files import ScriptedEngine


class RatingScript(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    scores: by a text, and then by another text, or a paragraph's title or text.
    default: for pairs that the script doesn't contain.
    """

    scores: dict[str, dict[str, float]] = {}
    default: float = 0.0


class ScriptedRater(ScriptedEngine[RatingScript]):
    """Scores by a script."""

    form = RatingScript

    def rate(self, ratings: Sequence[Rating]) -> list[Rated]:
        """See `Rater`."""
        return [self._rated(each) for each in ratings]

    def _rated(self, rating: Rating) -> Rated:
        scores, default = self._script.scores.get(rating.text, {}), self._script.default

        def score(paragraph: Paragraph) -> float:
            return scores.get(paragraph.title, scores.get(paragraph.text, default))

        return Rated(
            scores=(
                *(scores.get(each, default) for each in rating.others),
                *(score(each) for each in rating.paragraphs),
            )
        )
