"""Results that the IRCoT paper reports (`published.toml`), to be shown beside own results; scores are from 0 to 1."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.systems.parts.reading import Reader

FILE = Path(__file__).with_name("published.toml")


class Dataset(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The paper's names for a dataset: in full, and in figures 5 and 6."""

    title: str
    short: str


class Subset(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a dataset that the paper scores separately: the questions of one kind."""

    title: str
    dataset: str
    kind: str


class ReportedScores(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """EM and F1 of a system's answers; None where not reported."""

    em: float | None = None
    f1: float | None = None


class Rival(Struct, frozen=True, array_like=True):
    """A row of tables 1 and 3; reference: the paper's source of the scores, empty for its own."""

    system: str
    reader: str
    model: str
    where: str
    reference: str
    scores: Mapping[str, ReportedScores]


class AnswerF1(Struct, frozen=True, array_like=True):
    """A row of table 4 or 6: mean and standard deviation over three demonstration sets, by dataset."""

    where: str
    model: str
    system: str
    reader: Reader
    scores: Mapping[str, tuple[float, float]]


class ReportedDifference(Struct, frozen=True, array_like=True):
    """Improvement of IRCoT over one-step retrieval (section 5), by dataset; metric: a field of `QuestionScores`."""

    where: str
    metric: str
    model: str
    reader: Reader
    scores: Mapping[str, float]


class ErrorReduction(Struct, frozen=True, array_like=True):
    """Share of one-step retrieval's chains with factual errors that IRCoT avoids (figure 7), by dataset."""

    where: str
    model: str
    reader: Reader
    scores: Mapping[str, float]


class PublishedResults(Struct, frozen=True, kw_only=True):
    """All numbers that the paper reports.

    datasets: in the paper's order; parameters: number of a model's parameters in billions, in ascending order.
    readers: the reader of each model in the figures (section 4.2).
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
def published() -> PublishedResults:
    """Load the paper's results."""
    raw = tomllib.loads(FILE.read_text("utf-8"))
    rows = {name: [_read(row, raw["datasets"]) for row in raw[name]] for name in raw if isinstance(raw[name], list)}
    return msgspec.convert(raw | rows, PublishedResults)


def _read(row: list[Any], datasets: Iterable[str]) -> list[Any]:
    """A row with its scores, from 0 to 1, by dataset or subset."""
    *labels, scores = row
    by_place = scores if isinstance(scores, dict) else dict(zip(datasets, scores, strict=False))
    return [*labels, _share(by_place)]


def _share(points: Any) -> Any:
    """Convert points out of 100 to a share of 1, rounded to the printed decimals."""
    if isinstance(points, dict):
        return {name: _share(value) for name, value in points.items()}
    if isinstance(points, list):
        return [_share(value) for value in points]
    return round(points / 100, 3)
