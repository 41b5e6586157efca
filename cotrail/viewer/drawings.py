"""Drawings of a question: how long its steps were waiting and claimed, and when it found its gold paragraphs."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from cotrail.common.humanize import duration
from cotrail.services.results.reasoning import FoundGold
from cotrail.services.results.steps import StepTimes

WIDTH, LEFT, RIGHT = 1000, 84, 990
TOP, ROW = 20, 18
"""Where the drawing's rows begin, and how high they are."""

# The drawing of how long steps were waiting and claimed; time in which none was claimed is drawn shorter.

MOST_ROWS = 4
"""The rows of a kind: steps of it that work at the same time stand below each other, more of them in the last row."""

IDLE_SHARE = 0.3
"""The share of the width that is left to time in which no step works."""

Span = tuple[float, float]


class Bar(Struct, frozen=True, kw_only=True):
    """A step: where it was asked for, where it began and where it ended; under way: it hasn't."""

    step: int
    kind: str
    under_way: bool
    words: str
    y: float
    asked: float
    begun: float
    ended: float


class Pause(Struct, frozen=True, kw_only=True):
    """Time in which no step was claimed, drawn shorter than it was."""

    x: float
    width: float
    words: str


class Timeline(Struct, frozen=True, kw_only=True):
    """Steps in time; lanes: where the rows of each kind begin; words: how long they were claimed and waiting."""

    lanes: Mapping[str, float]
    bars: tuple[Bar, ...]
    pauses: tuple[Pause, ...]
    words: str
    height: float
    width: int = WIDTH


def timeline(times: Iterable[StepTimes]) -> Timeline | None:
    """The drawing of steps with these times; None where none has begun."""
    spans = {each.sequence: span for each in times if (span := _worked(each))}
    begun = [each for each in times if each.sequence in spans]
    if not begun:
        return None
    axis = _Axis(min(each.asked_at.timestamp() for each in begun), _united(spans.values()))
    rows, lanes = _rows(begun, spans)
    return Timeline(
        lanes={kind: TOP + ROW * row for kind, row in lanes.items()},
        bars=tuple(_bar(each, spans[each.sequence], rows[each.sequence], axis) for each in begun),
        pauses=tuple(axis.pauses),
        words=f"steps claimed for {duration(axis.worked)}, none for {duration(axis.idle)}",
        height=TOP + ROW * (max(rows.values()) + 1) + 4,
    )


class _Axis:
    """Places of moments: time in which something works has one scale, and longer pauses are cut to one length."""

    def __init__(self, origin: float, busy: Sequence[Span]) -> None:
        ends = [origin, *(end for _, end in busy)]
        idle = [(end, start) for end, (start, _) in zip(ends, busy, strict=False) if start > end]
        self.worked, self.idle = _length(busy), _length(idle)
        most = self.worked * IDLE_SHARE / (1 - IDLE_SHARE) / max(len(idle), 1) or self.idle
        self._begins, self._places, self._pauses = [origin], [0.0], list[tuple[float, float, float]]()
        for start, end in sorted([*busy, *idle]):
            drawn = end - start if (start, end) not in idle else min(end - start, most)
            if drawn < end - start:
                self._pauses.append((self._places[-1], drawn, end - start))
            self._begins.append(end)
            self._places.append(self._places[-1] + drawn)
        self._scale = (RIGHT - LEFT) / (self._places[-1] or 1)

    def place(self, moment: float) -> float:
        """Where a moment is."""
        at = min(max(bisect_right(self._begins, moment), 1), len(self._begins) - 1)
        (begin, end), (left, right) = self._begins[at - 1 : at + 1], self._places[at - 1 : at + 1]
        share = (moment - begin) / (end - begin) if end > begin else 0
        return LEFT + self._scale * (left + share * (right - left))

    @property
    def pauses(self) -> Iterator[Pause]:
        """The pauses that are cut."""
        for left, drawn, seconds in self._pauses:
            yield Pause(x=LEFT + self._scale * left, width=self._scale * drawn, words=duration(seconds))


def _worked(each: StepTimes) -> Span | None:
    """When a step was claimed, in seconds of Unix time; one that is under way has just begun."""
    if each.started_at is None:
        return None
    start = each.started_at.timestamp()
    return start, max(each.finished_at.timestamp(), start) if each.finished_at else start


def _united(spans: Iterable[Span]) -> list[Span]:
    """The time that these take up, without overlaps."""
    united: list[Span] = []
    for start, end in sorted(spans):
        if united and start <= united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((start, end))
    return united


def _length(spans: Iterable[Span]) -> float:
    return sum(end - start for start, end in spans)


def _rows(times: Sequence[StepTimes], spans: Mapping[int, Span]) -> tuple[dict[int, int], dict[str, int]]:
    """The row of each step, and the first row of each kind, in the order in which they first began."""
    places, lanes, row = dict[int, int](), dict[str, int](), 0
    for kind in dict.fromkeys(each.kind for each in times):
        free: list[float] = []
        for each in (each for each in times if each.kind == kind):
            start, end = spans[each.sequence]
            own = next((number for number, until in enumerate(free) if until <= start), len(free))
            free[own : own + 1] = [end]
            places[each.sequence] = row + min(own, MOST_ROWS - 1)
        lanes[kind] = row
        row += min(len(free), MOST_ROWS)
    return places, lanes


def _bar(each: StepTimes, span: Span, row: int, axis: _Axis) -> Bar:
    asked, (start, end) = each.asked_at.timestamp(), span
    under_way = each.finished_at is None
    worked = "under way" if under_way else f"claimed for {duration(end - start)}"
    return Bar(
        step=each.sequence,
        kind=each.kind,
        under_way=under_way,
        words=f"step {each.sequence}, {each.kind}: waiting for {duration(max(start - asked, 0))}, {worked}",
        y=TOP + ROW * row,
        asked=axis.place(asked),
        begun=axis.place(start),
        ended=max(axis.place(end), axis.place(start) + 2),
    )


# The drawing of when a question found its gold paragraphs.

NAME = 34
"""The width of a point's name."""


class GoldPoint(Struct, frozen=True, kw_only=True):
    """A turn that first found gold paragraphs; found: how many by then; is_named: whether its name has room."""

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
    following = [*list(counts)[1:], None][: len(counts)]  # none where nothing is found yet
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
