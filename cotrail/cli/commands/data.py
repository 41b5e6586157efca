"""`cotrail data`: builds the datasets' corpora from their published files, and draws questions."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.output import console, print_json
from cotrail.common.humanize import count, duration
from cotrail.data.corpora.building import BuildProgress, CompleteCorpus, build_corpus
from cotrail.data.datasets.registry import DATASETS, RECIPES, find_recipe
from cotrail.services.library.datasets import sample as draw

data = typer.Typer(
    name="data",
    help="Build the datasets' corpora from their published files, and draw questions.",
    no_args_is_help=True,
)


class BuiltCorpus(Struct, frozen=True, kw_only=True):
    """A corpus that was just built, or was there."""

    output: str
    paragraphs: int
    duplicates: int
    resumed: int
    is_new: bool
    seconds: float


@data.command()
def build(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help=f"One of {', '.join(RECIPES)}.", show_default=False)
    ],
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="The published files that it is made from; `cotrail datasets NAME` says which.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", metavar="FILE", help="The corpus file to write.", show_default=False)
    ],
    *,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Shuffles the paragraphs of IIRC's pages.")
    ] = 0,
    json: Json = False,
) -> None:
    """Build a dataset's corpus as the paper did; an interrupted build continues where it was.

    Example: `cotrail data build musique musique_*_v1.0_*.jsonl --output musique.jsonl`
    """
    started = time.monotonic()
    recipe = find_recipe(dataset)
    with _progress(visible=not json) as progress:
        try:
            built = build_corpus(dataset, paths, output, seed=seed, progress=progress)
        except KeyboardInterrupt:
            console(stderr=True).print("Interrupted; the same command continues from here.")
            raise
    seconds = time.monotonic() - started
    if json:
        print_json(_described(built, seconds))
        return
    console().print(_sentence(built, seconds), soft_wrap=True)
    console().print(
        f"The paper's has {count(recipe.paper_paragraphs, 'paragraph')}. "
        f"To search it: cotrail index {output} --name {dataset}",
        style="dim",
        soft_wrap=True,
    )


@data.command()
def sample(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help=f"One of {', '.join(DATASETS)}.", show_default=False)
    ],
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A question file.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="The folder to write both files to.", show_default=False)
    ],
    *,
    development: Annotated[int, typer.Option("--development", metavar="N", min=0, help="How many to tune with.")] = 100,
    test: Annotated[int, typer.Option("--test", metavar="N", min=0, help="How many others to test with.")] = 500,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Another seed draws other questions.")] = 0,
    json: Json = False,
) -> None:
    """Draw development and test questions, none in both, as files of the same format.

    The draw depends on the questions' ids and the seed, not on their order.

    Example: `cotrail data sample hotpotqa hotpot_dev_distractor_v1.json --output drawn`
    """
    files = draw(dataset, path, output, development=development, test=test, seed=seed)
    if json:
        print_json(files)
        return
    sizes = f"{count(development, 'question')} to {files.development} and {test:,} to {files.test}"
    console().print(f"Wrote {sizes}.", soft_wrap=True)


def _described(built: CompleteCorpus, seconds: float) -> BuiltCorpus:
    return BuiltCorpus(
        output=str(built.output),
        paragraphs=built.paragraphs,
        duplicates=built.duplicates,
        resumed=built.resumed,
        is_new=built.is_new,
        seconds=seconds,
    )


def _sentence(built: CompleteCorpus, seconds: float) -> str:
    if not built.is_new:
        return f"{built.output} is built already: {count(built.paragraphs, 'paragraph')}. Nothing to do."
    resumed = f", {built.resumed:,} of them by an earlier build that was interrupted" if built.resumed else ""
    left_out = f" {count(built.duplicates, 'duplicate')} left out." if built.duplicates else ""
    return f"Built {built.output} in {duration(seconds)}: {count(built.paragraphs, 'paragraph')}{resumed}.{left_out}"


@contextmanager
def _progress(*, visible: bool) -> Iterator[Callable[[BuildProgress], None]]:
    columns = (
        TextColumn("Building"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[counted]}"),
        TimeElapsedColumn(),
    )
    screen = console(stderr=True)
    with Bar(*columns, console=screen, transient=True, disable=not (visible and screen.is_terminal)) as bar:
        task = bar.add_task("", total=None, counted="")

        def show(progress: BuildProgress) -> None:
            number = count(progress.paragraphs, "paragraph")
            bar.update(task, completed=progress.done, total=progress.total, counted=number)

        yield show
