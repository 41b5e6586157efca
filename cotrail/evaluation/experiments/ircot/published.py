"""What the IRCoT paper reports (`published.toml`), to stand beside one's own results; scores here go from 0 to 1."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.systems.settings import Reader

FILE = Path(__file__).with_name("published.toml")


class Dataset(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the paper writes a dataset's name, in full and in figures 5 and 6."""

    title: str
    short: str


class Subset(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a dataset with scores of its own: the questions that the dataset calls `kind`."""

    title: str
    dataset: str
    kind: str


class ReportedScores(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """EM and F1 of a system's answers; None where its authors report none."""

    em: float | None = None
    f1: float | None = None


class Rival(Struct, frozen=True, kw_only=True):
    """A row of tables 1 and 3; scores by the name of the dataset or the subset.

    reference: where the paper has the scores from; empty for its own.
    """

    system: str
    model: str
    reader: str
    where: str
    reference: str
    scores: Mapping[str, ReportedScores]


class AnswerF1(Struct, frozen=True, kw_only=True):
    """A row of table 4 or 6: mean and standard deviation over three demonstration sets, by dataset."""

    where: str
    model: str
    system: str
    reader: Reader
    scores: Mapping[str, tuple[float, float]]


class ReportedDifference(Struct, frozen=True, kw_only=True):
    """By how much IRCoT exceeds one-step retrieval (section 5), by dataset; metric as in `QuestionScores`."""

    where: str
    metric: str
    model: str
    reader: Reader
    scores: Mapping[str, float]


class ErrorReduction(Struct, frozen=True, kw_only=True):
    """The share of one-step retrieval's untrue chains that IRCoT avoids (figure 7), by dataset."""

    where: str
    model: str
    reader: Reader
    scores: Mapping[str, float]


class Published(Struct, frozen=True, kw_only=True):
    """All that the paper reports in numbers.

    datasets: in the paper's order; parameters: of a model, in billions, from the smallest model on.
    readers: what a model answers as in the figures (section 4.2).
    """

    datasets: Mapping[str, Dataset]
    subsets: Mapping[str, Subset]
    parameters: Mapping[str, float]
    readers: Mapping[str, Reader]
    leaderboard: tuple[Rival, ...]
    answer_f1: tuple[AnswerF1, ...]
    differences: tuple[ReportedDifference, ...]
    error_reductions: tuple[ErrorReduction, ...]


@cache
def published() -> Published:
    """What the paper reports."""
    raw = tomllib.loads(FILE.read_text("utf-8"))
    places = (*raw["datasets"], *raw["subsets"])
    records = {name: [_gathered(row, places) for row in raw[name]] for name in raw if isinstance(raw[name], list)}
    for row in records["leaderboard"]:
        row.setdefault("reference", "")
        row.setdefault("reader", "")
    return msgspec.convert(raw | records, Published)


def _gathered(row: dict[str, Any], places: tuple[str, ...]) -> dict[str, Any]:
    """The row with what it has for each dataset under `scores`."""
    scores = {place: _share(row[place]) for place in places if place in row}
    return {name: value for name, value in row.items() if name not in scores} | {"scores": scores}


def _share(points: Any) -> Any:
    """Points out of 100 as a share of 1, with the decimals that are printed."""
    if isinstance(points, dict):
        return {name: _share(value) for name, value in points.items()}
    if isinstance(points, list):
        return [_share(value) for value in points]
    return round(points / 100, 3)
