"""`cotrail datasets`: the datasets whose questions can be read."""

from typing import Annotated

import typer
from rich.console import Console

from cotrail.cli.arguments import Json, completing
from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import console, grid, heading, print_json
from cotrail.common.humanize import count
from cotrail.data.datasets.registry import DATASETS
from cotrail.services.library import datasets as operations
from cotrail.services.library.datasets import ListedDataset


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The dataset to describe.",
            show_default=False,
            autocompletion=completing(lambda: DATASETS),
        ),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """List the datasets; of one, its files, where to get them, its metric and its corpus.

    Nothing is downloaded.
    """
    if json:
        print_json(operations.list_datasets() if name is None else operations.describe_dataset(name))
    elif name is not None:
        _print_dataset(console(), operations.describe_dataset(name))
    else:
        titles = ("dataset", "asks for", "metric", "corpus")
        print_rows(
            console(), [Column(title=title) for title in titles], [_row(each) for each in operations.list_datasets()]
        )
        hint = "`cotrail datasets NAME` says where to get the files."
        console().print(hint, style="dim", soft_wrap=True)


def _row(each: ListedDataset) -> list[str]:
    return [each.name, each.asks, each.metric, "can be built" if each.corpus else "-"]


def _print_dataset(screen: Console, dataset: ListedDataset) -> None:
    screen.print(heading(f"{dataset.title} (--dataset {dataset.name})"))
    about = grid("dim", "")
    about.add_row("asks for", dataset.asks)
    about.add_row("files", dataset.files)
    about.add_row("formats", "; ".join(dataset.formats) or "its own")
    about.add_row("from", dataset.source)
    about.add_row("metric", dataset.metric)
    about.add_row("kinds", dataset.kinds or "none")
    about.add_row("corpus", _corpus(dataset))
    screen.print(about)


def _corpus(dataset: ListedDataset) -> str:
    if dataset.corpus is None or dataset.paper_paragraphs is None:
        return "none to build; `cotrail index` makes one of any paragraphs"
    size = count(dataset.paper_paragraphs, "paragraph")
    return f"`cotrail data build {dataset.name}` makes it from {dataset.corpus}; the paper's has {size}"
