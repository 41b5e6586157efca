"""Reader of published figures: what was measured how, and which of cotrail's systems each row is of."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from cotrail.data.datasets.registry import DATASETS
from cotrail.evaluation.experiments import report_tables

FOLDER = Path(__file__).parent / "published"

OTHERS = "others"
"""The datasets that aren't named."""

SHARED = ("backbone", "corpus", "k", "questions", "points")
"""What a table has from its source, and a row from its table, unless it says otherwise."""

OWN = ("said", "model", "layouts", "names")
"""What a file has for the paper's own experiments."""

SHARES: frozenset[report_tables.Unit | None] = frozenset(("percent", "score", "gain"))
"""Units of values that are printed as points out of 100."""

Measure = Literal["score", "misled"]
"""What a figure is: a mean score, or the share of right answers that retrieval made wrong."""

Stated = str | Mapping[str, str]
"""A fact, of all datasets or by dataset; empty where it isn't stated, or there is nothing to state."""


class Method(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A system with these settings; the others don't matter."""

    system: str
    settings: Mapping[str, Any] = {}

    def is_of(self, system: str, settings: Mapping[str, Any]) -> bool:
        """Return whether a run of that system with these settings is one of the method."""
        return self.system == system and _has(settings, self.settings)


class PublishedRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row as printed.

    methods: the systems whose runs are next to it; without: what they are compared with, where retrieval is left out.
    where: its place, if it isn't the table's. backbone: the language model. corpus: with the search engine.
    k: paragraphs a search. questions: how many, and which. points: what stands for 1.
    scores: by dataset, from 0 to 1.
    """

    label: str
    where: str
    methods: tuple[Method, ...]
    without: tuple[Method, ...] = ()
    backbone: Stated = ""
    corpus: Stated = ""
    k: Stated = ""
    questions: Stated = ""
    points: float = 100
    scores: Mapping[str, float]

    def is_of(self, system: str, settings: Mapping[str, Any]) -> bool:
        """Return whether a run of that system with these settings is compared with it."""
        return any(method.is_of(system, settings) for method in self.methods)


class PublishedTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table, or a part of one, whose figures are alike.

    metric: the names of our metrics that come nearest, by dataset. datasets: by our names, in the order of its columns.
    """

    name: str
    heading: str
    where: str
    metric: Stated
    datasets: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    measure: Measure = "score"
    notes: tuple[str, ...] = ()


class Source(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A paper or a toolkit; cited: who, and where to find it; notes: of all its tables."""

    name: str
    cited: str
    title: str
    tables: tuple[PublishedTable, ...]
    notes: tuple[str, ...] = ()

    def table(self, name: str) -> PublishedTable:
        """The table of that name."""
        return next(table for table in self.tables if table.name == name)


def fact(said: Stated, dataset: str) -> str:
    """What is said for a dataset."""
    return said if isinstance(said, str) else said.get(dataset, said.get(OTHERS, ""))


def dataset_title(dataset: str) -> str:
    """The dataset's title, or the name that a file gives it."""
    return DATASETS[dataset].title if dataset in DATASETS else dataset


def table_rows(
    table: PublishedTable, model: str, places: Mapping[str, str] | None = None
) -> tuple[report_tables.TableRow, ...]:
    """Its rows with a column for each dataset; places: other names of these columns."""
    return tuple(
        report_tables.TableRow(
            values={"label": row.label, "model": model, **{(places or {}).get(d, d): v for d, v in row.scores.items()}},
            published=row.where,
        )
        for row in table.rows
    )


@cache
def source(name: str) -> Source:
    """The source of that name, which is its file's in this folder."""
    raw = _read(name)
    tables = [_table(raw, table) for table in raw["tables"]]
    return msgspec.convert({**_without(raw, *SHARED, *OWN), "name": name, "tables": tables}, Source)


def filed_sources() -> Iterator[Source]:
    """The sources that are files in this folder, by their names; without those that only have own experiments."""
    return (source(path.stem) for path in sorted(FOLDER.glob("*.toml")) if "tables" in _read(path.stem))


def _table(of: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """A table with what its rows have in common written out in each."""
    shared = {key: each[key] for each in (of, table) for key in SHARED if key in each}
    rows = [{"where": table["where"], **shared, **row} for row in table["rows"]]
    return {**_without(table, *SHARED), "rows": [{**row, "scores": _scores(row, table["datasets"])} for row in rows]}


def _scores(row: Mapping[str, Any], datasets: list[str]) -> dict[str, float]:
    """The scores by dataset, from 0 to 1, with the printed decimals."""
    scores = row["scores"] if isinstance(row["scores"], dict) else dict(zip(datasets, row["scores"], strict=True))
    return {dataset: _share(score, row.get("points", 100)) for dataset, score in scores.items()}


def _without(tree: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in tree.items() if key not in keys}


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))


def _has(tree: Any, part: Any) -> bool:
    """Return whether a tree of settings has all that is in a part of one."""
    if isinstance(part, Mapping):
        return isinstance(tree, Mapping) and all(key in tree and _has(tree[key], part[key]) for key in part)
    return bool(tree == part)


# Tables of a paper's own experiments: their columns and notes, and the rows that the paper prints.

ACROSS = "*"
"""The name of the column in whose place stand those that a table has by its own rows, such as one a dataset."""


class Layout(Struct, frozen=True, kw_only=True):
    """A table that own runs fill; rows: as the paper prints them, with shares from 0 to 1."""

    name: str
    title: str
    columns: tuple[report_tables.Column, ...]
    rows: tuple[report_tables.TableRow, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its columns, aside from those by own rows."""
        return tuple(column.name for column in self.columns if column.name != ACROSS)

    def filled(
        self,
        own: Sequence[report_tables.TableRow],
        *notes: str,
        across: Sequence[report_tables.Column] = (),
        order: Callable[[report_tables.TableRow], Any] | None = None,
    ) -> report_tables.ReportTable | None:
        """The table with own rows before the paper's of the same `label`, in the paper's order; None without own rows.

        Labels that the paper lacks come first; rows of the paper that have none of the values are left out.
        notes: more than it always has. across: see `ACROSS`. order: of all rows, if it isn't that by labels.
        """
        columns = [each for column in self.columns for each in (across if column.name == ACROSS else (column,))]
        values = {column.name for column in across or columns} - {"label", "model"}
        theirs = [row for row in self.rows if row.values.keys() & values]
        places = {row.values.get("label"): place for place, row in reversed(list(enumerate(theirs)))}
        rows = sorted((*own, *theirs), key=order or (lambda row: places.get(row.values.get("label"), 0)))
        return report_tables.listing(self.name, self.title, columns, rows, notes=(*self.notes, *notes)) if own else None


class Printed(Struct, frozen=True, kw_only=True):
    """What a paper prints.

    said: where its figures are from, in a sentence; empty where it prints none. layouts: its tables by name.
    names: those that it has for what it measures, as its file has them.
    """

    said: str
    layouts: Mapping[str, Layout]
    names: Mapping[str, Any]


def printed(name: str, places: Mapping[str, str] | None = None) -> Printed:
    """What the paper of that file prints; places: names of the columns of its datasets, where these are others."""
    raw = _read(name)
    layouts = [_layout(name, {"model": raw.get("model")}, layout, places) for layout in raw["layouts"]]
    return Printed(said=raw.get("said", ""), layouts={each.name: each for each in layouts}, names=raw.get("names", {}))


def _layout(of: str, shared: Mapping[str, Any], layout: Mapping[str, Any], places: Mapping[str, str] | None) -> Layout:
    """A layout with what its rows have in common written out in each; shared: what those of all layouts have."""
    columns = tuple(report_tables.Column(*column) for column in layout["columns"])
    units = {column.name: column.unit for column in columns}
    of_all = {"where": layout.get("where"), **shared, **layout.get("of_all", {})}
    rows = tuple(_printed_row({**of_all, **row}, units) for row in layout.get("rows", ()))
    if "rows_of" in layout:
        rows = table_rows(source(of).table(layout["rows_of"]), of_all["model"], places)
    notes = tuple(layout.get("notes", ()))
    return Layout(name=layout["name"], title=layout["title"], columns=columns, rows=rows, notes=notes)


def _printed_row(row: Mapping[str, Any], units: Mapping[str, report_tables.Unit]) -> report_tables.TableRow:
    values = {name: _printed_value(value, units.get(name, units.get(ACROSS))) for name, value in row.items()}
    return report_tables.TableRow(values=_without(values, "where"), published=row["where"])


def _printed_value(value: Any, unit: report_tables.Unit | None) -> report_tables.Value:
    """A value with shares from 0 to 1: a number, a mean and its deviation, or EM and F1."""
    match value:
        case dict():
            em, f1 = (report_tables.Mean(mean=_share(value[each])) if each in value else None for each in ("em", "f1"))
            return report_tables.EMAndF1(em=em, f1=f1)
        case [mean, deviation]:
            return report_tables.Mean(mean=_share(mean), deviation=_share(deviation))
        case int() | float() if unit in SHARES:
            return _share(value)
    printed_value: report_tables.Value = value
    return printed_value


def _share(points: float, of: float = 100) -> float:
    """The share that a paper prints as points, by the printed decimals."""
    return round(points / of, 4)
