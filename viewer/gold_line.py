"""The drawing of when a question found its gold paragraphs."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cotrail.services.views.gold_paragraphs import FoundGold

NAME = 34
"""The width of a point's name."""


class GoldPoint(Struct, frozen=True, kw_only=True):
    """A turn that first found gold paragraphs; found: how many there are by then.

    is_named: whether there is room for its name.
    """

    turn: int
    found: int
    x: float
    y: float
    is_named: bool


class GoldLine(Struct, frozen=True, kw_only=True):
    """How many of the gold paragraphs were found by each turn; line: of SVG."""

    turns: int
    gold: int
    points: tuple[GoldPoint, ...]
    line: str
    width: int = 380
    height: int = 96
    left: int = 34
    right: int = 356
    top: int = 26
    bottom: int = 70

    @property
    def words(self) -> str:
        """The same in words."""
        if not self.points:
            return f"none of the {self.gold} gold paragraphs was found" if self.gold > 1 else "it was never found"
        return ", ".join(f"{each.found} of {self.gold} at turn {each.turn}" for each in self.points)


def gold_line(gold: Sequence[FoundGold], turn_of: Mapping[int, int], turns: int) -> GoldLine | None:
    """The line of a question with so many turns, None where none are gold; turn_of: turns by their steps."""
    if not gold or not turns:
        return None
    empty = GoldLine(turns=turns, gold=len(gold), points=(), line="")
    at = sorted(turn_of[each.found.step] for each in gold if each.found and each.found.step in turn_of)
    counts = {turn: number for number, turn in enumerate(at, start=1)}
    across, up = (empty.right - empty.left) / max(turns - 1, 1), (empty.bottom - empty.top) / len(gold)
    following = [*list(counts)[1:], None]
    points = tuple(
        GoldPoint(
            turn=turn,
            found=found,
            x=empty.left + (turn - 1) * across,
            y=empty.bottom - found * up,
            is_named=behind is None or (behind - turn) * across >= NAME,
        )
        for (turn, found), behind in zip(counts.items(), following, strict=True)
    )
    return GoldLine(turns=turns, gold=len(gold), points=points, line=_steps(points, empty))


def _steps(points: Sequence[GoldPoint], chart: GoldLine) -> str:
    line, y = [f"{chart.left},{chart.bottom}"], float(chart.bottom)
    for point in points:
        line += [f"{point.x:.1f},{y:.1f}", f"{point.x:.1f},{point.y:.1f}"]
        y = point.y
    return " ".join([*line, f"{chart.right},{y:.1f}"])
