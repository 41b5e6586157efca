"""`cotrail data` and `cotrail datasets`: corpora of published files, draws of questions, and what can be read."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from cotrail.cli.request_options import Json, RunName, argument, completing, option
from cotrail.cli.terminal.following import at_intervals
from cotrail.cli.terminal.output import console, grid, heading, in_json, print_json, print_rows, titled
from cotrail.common.humanize import count, duration, size
from cotrail.core.demonstrations import AnswerForm
from cotrail.data.corpora.building import BuildProgress, CompleteCorpus, build_corpus
from cotrail.data.datasets.registry import DATASETS, RECIPES, find_recipe
from cotrail.data.demonstrations.building import DISTRACTORS, DemonstrationShape, FormName, Style
from cotrail.data.demonstrations.self_written import Simple
from cotrail.errors import InputError
from cotrail.services.library import datasets as operations
from cotrail.services.library.datasets import BuildRequest, ListedDataset, WrittenDemonstrations
from cotrail.services.library.datasets import build as build_files
from cotrail.services.library.datasets import sample as draw
from cotrail.services.library.downloads import Downloading, OnBytes, fetch, find_published, published, read_sizes
from cotrail.services.results.recorded_chains import SelfWrittenRequest, build_from_run
from cotrail.services.runs.importing import import_file

demonstrations = typer.Typer(
    name="demonstrations", help="Build demonstrations from questions or a run.", no_args_is_help=True
)


@demonstrations.command("build")
def build_demonstrations(
    dataset: Annotated[str, option("demonstrations.build.dataset", words={"datasets": ", ".join(DATASETS)})],
    questions: Annotated[Path, option("demonstrations.build.questions")],
    output: Annotated[Path, option("demonstrations.build.output")],
    *,
    annotations: Annotated[Path | None, option("demonstrations.build.annotations")] = None,
    distractors: Annotated[
        int | None, option("demonstrations.build.distractors", min=DISTRACTORS[0], max=DISTRACTORS[-1])
    ] = None,
    form: Annotated[FormName | None, option("demonstrations.build.form")] = None,
    style: Annotated[Style | None, option("demonstrations.build.style")] = None,
    seed: Annotated[int, option("demonstrations.build.seed")] = 0,
    everything: Annotated[bool, option("demonstrations.build.all")] = False,
    corpus: Annotated[str | None, option("demonstrations.build.corpus")] = None,
    json: Json = False,
) -> None:
    """Build demonstrations: gold paragraphs, M distractors, the question and its answer.

    Example: `cotrail demonstrations build --dataset hotpotqa --questions train.json --annotations chains.jsonl
    --output demonstrations.txt`
    """
    if everything and not (distractors is None and form is None and style is None):
        raise InputError("--all builds every --form, --style and --distractors; leave these out, or leave out --all")
    number = DISTRACTORS[2] if distractors is None else distractors
    shape = DemonstrationShape(form=AnswerForm(form or "cot"), style=style or "codex", distractors=number)
    files = build_files(
        BuildRequest(
            dataset=dataset,
            questions=questions,
            output=output,
            annotations=annotations,
            shape=None if everything else shape,
            seed=seed,
            corpus=corpus,
        )
    )
    if not in_json({"files": files}, json=json):
        _print_written(files, output)


@demonstrations.command("from-run")
def from_run(
    run: RunName,
    output: Annotated[Path, option("demonstrations.from-run.output")],
    *,
    number: Annotated[int, option("demonstrations.from-run.number")] = 8,
    embedder: Annotated[str | None, option("demonstrations.from-run.embedder")] = None,
    seed: Annotated[int | None, option("demonstrations.from-run.seed")] = None,
    question_words: Annotated[int, option("demonstrations.from-run.question-words")] = Simple().question_words,
    steps: Annotated[int, option("demonstrations.from-run.steps")] = Simple().steps,
    json: Json = False,
) -> None:
    """Build demonstrations for auto-cot: chains that a model wrote, of questions unlike one another.

    RUN is a finished run of zero-shot-chain-of-thought over questions for training.

    Example: `cotrail demonstrations from-run latest --output demonstrations.txt`
    """
    simple = Simple(question_words=question_words, steps=steps)
    written = build_from_run(
        SelfWrittenRequest(run=run, output=output, number=number, simple=simple, embedder=embedder, seed=seed)
    )
    if in_json({"files": [written]}, json=json):
        return
    made, questions = count(written.demonstrations, "demonstration"), count(written.questions, "question")
    console().print(f"Wrote {made} of {questions} to {output}.", soft_wrap=True)


def _print_written(sets: Sequence[WrittenDemonstrations], output: Path) -> None:
    number = count(sets[0].demonstrations, "demonstration")
    files = f"{count(len(sets), 'file')} of {number} each" if len(sets) > 1 else number
    console().print(f"Wrote {files} to {output}.", soft_wrap=True)
    for lacking in _lacking(sets):
        console().print(lacking, style="yellow", soft_wrap=True)


def _lacking(files: Iterable[WrittenDemonstrations]) -> list[str]:
    """A line for each number of distractors that some questions don't have."""
    fewer = {each.distractors: each for each in files if each.fewer_distractors}
    return [
        f"{each.fewer_distractors} of {count(each.demonstrations, 'question')} without {count(number, 'distractor')}: "
        "all that they have are included."
        for number, each in sorted(fewer.items())
    ]


data = typer.Typer(
    name="data",
    help="Build the datasets' corpora from their published files, and draw questions.",
    no_args_is_help=True,
)


@data.command()
def get(
    name: Annotated[str | None, argument("data.get.name", autocompletion=completing(published))] = None,
    *,
    to: Annotated[Path | None, option("data.get.to")] = None,
    mirror: Annotated[str | None, option("data.get.mirror")] = None,
    json: Json = False,
) -> None:
    """Fetch published questions and corpora; an interrupted download continues where it was.

    Says whose they are, their licence and their size before. Digests are written next to the files.

    Example: `cotrail data get hotpotqa --to data/hotpotqa`
    """
    if name is None:
        _print_published(json=json)
        return
    folder = to or Path(name)
    if not json:
        files, sizes = find_published(name), read_sizes(name, mirror)
        known = f"{size(sum(each or 0 for each in sizes))}{' and more' if None in sizes else ''}"
        console().print(f"{files.what}: {count(len(sizes), 'file')}, {known}, to {folder}", soft_wrap=True)
        console().print(f"licence: {files.licence}; see {files.source}", style="dim", soft_wrap=True)
    with _downloading(visible=not json) as on_bytes:
        fetched = fetch(name, folder, mirror, on_bytes)
    if in_json(fetched, json=json):
        return
    for each in fetched:
        earlier = f", {size(each.resumed)} of it earlier" if each.resumed else ""
        done = f"fetched {size(each.bytes)}{earlier}" if each.is_new else "is here already"
        console().print(f"{each.path}: {done}; SHA-256 {each.sha256}", soft_wrap=True)
    hint = f"`cotrail datasets {name}` says how it is read." if name in DATASETS else "`cotrail index FILE --name NAME`"
    console().print(hint, style="dim", soft_wrap=True)


@data.command()
def build(
    dataset: Annotated[str, argument("data.build.dataset", words={"recipes": ", ".join(RECIPES)})],
    paths: Annotated[list[Path], argument("data.build.paths")],
    output: Annotated[Path, option("data.build.output")],
    *,
    seed: Annotated[int, option("data.build.seed")] = 0,
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
    if in_json({**msgspec.structs.asdict(built), "output": str(built.output), "seconds": seconds}, json=json):
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
    dataset: Annotated[str, argument("data.sample.dataset", words={"datasets": ", ".join(DATASETS)})],
    path: Annotated[Path, argument("data.sample.path")],
    output: Annotated[Path, option("data.sample.output")],
    *,
    development: Annotated[int, option("data.sample.development")] = 100,
    test: Annotated[int, option("data.sample.test")] = 500,
    seed: Annotated[int, option("data.sample.seed")] = 0,
    json: Json = False,
) -> None:
    """Draw development and test questions, none in both, as files of the same format.

    The draw depends on the questions' ids and the seed, not on their order.

    Example: `cotrail data sample hotpotqa hotpot_dev_distractor_v1.json --output drawn`
    """
    files = draw(dataset, path, output, development=development, test=test, seed=seed)
    if in_json(files, json=json):
        return
    sizes = f"{count(development, 'question')} to {files.development} and {test:,} to {files.test}"
    console().print(f"Wrote {sizes}.", soft_wrap=True)


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


@contextmanager
def _downloading(*, visible: bool) -> Iterator[OnBytes]:
    """A bar for each file on a terminal; elsewhere a line at intervals."""
    screen = console(stderr=True)
    if not visible or not screen.is_terminal:
        yield at_intervals(screen, 10, _downloaded, lambda each: each.done == each.whole) if visible else lambda _: None
        return
    with Bar(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=screen
    ) as bar:
        tasks: dict[str, TaskID] = {}

        def show(each: Downloading) -> None:
            if each.name not in tasks:
                tasks[each.name] = bar.add_task(each.name)
            bar.update(tasks[each.name], completed=each.done, total=each.whole)

        yield show


def _downloaded(each: Downloading) -> str:
    return f"{each.name}: {size(each.done)} of {'unknown' if each.whole is None else size(each.whole)}"


def _print_published(*, json: bool) -> None:
    known = published()
    if in_json(known, json=json):
        return
    rows = [[name, files.what, files.licence, files.source] for name, files in known.items()]
    print_rows(console(), titled("name", "what", "licence", "from"), rows)


def datasets(
    name: Annotated[str | None, argument("datasets.name", autocompletion=completing(lambda: DATASETS))] = None,
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
        rows = [
            [each.name, each.asks, each.metric, "can be built" if each.corpus else "-"]
            for each in operations.list_datasets()
        ]
        print_rows(console(), titled(*titles), rows)
        hint = "`cotrail datasets NAME` says where to get the files."
        console().print(hint, style="dim", soft_wrap=True)


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


# `cotrail import`: what other programs, and `cotrail.run`, recorded.


def import_(
    file: Annotated[Path, argument("import.file")],
    *,
    name: Annotated[str | None, option("import.name")] = None,
    model: Annotated[str, option("import.model")] = "unknown",
    dataset: Annotated[str, option("import.dataset", words={"datasets": ", ".join(DATASETS)})] = "jsonl",
    json: Json = False,
) -> None:
    """Import transcripts of other programs, or answers that `cotrail.run` saved, as a run.

    It is read, scored, judged, exported and compared as any run, and marked as imported: `cotrail audit verify` says
    that nothing shows it happened so.

    Example: `cotrail import transcripts.jsonl --model gpt-5`
    """
    show = at_intervals(console(stderr=True), 5, "{0[0]:,} of {0[1]:,} questions recorded".format, lambda _: False)
    imported = import_file(file, name=name, model=model, dataset=dataset, progress=lambda *at: show(at))
    if not in_json(imported, json=json):
        size, steps = count(imported.questions, "question"), count(imported.steps, "step")
        console().print(f"{imported.run}: {size} imported, with {steps}.", soft_wrap=True)
