"""`cotrail demonstrations`: makes demonstration files from questions that somebody annotated."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from cli.output import Json, console, count, print_json
from configuration.settings import settings
from cotrail.core.prompts import AnswerForm
from cotrail.data.datasets.annotated import AnnotatedQuestion
from cotrail.data.datasets.loading import DATASETS, load_annotated
from cotrail.data.demonstrations.building import (
    DISTRACTORS,
    DemonstrationShape,
    FormName,
    Style,
    build_demonstrations,
    choose_distractors,
    shapes,
)
from cotrail.data.demonstrations.chains import read_chains, with_chains
from cotrail.data.demonstrations.files import write_demonstrations
from cotrail.errors import DemonstrationError, InputError

demonstrations = typer.Typer(
    name="demonstrations",
    help="Build demonstrations from annotated questions.",
    no_args_is_help=True,
)


class Written(Struct, frozen=True, kw_only=True):
    """A file that was just written; fewer_distractors: how many of its questions have fewer than were asked for."""

    path: str
    demonstrations: int
    distractors: int
    fewer_distractors: int


@demonstrations.command()
def build(
    dataset: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(DATASETS)}.", show_default=False)],
    questions: Annotated[Path, typer.Option(metavar="PATH", help="The question file.", show_default=False)],
    output: Annotated[
        Path, typer.Option(metavar="PATH", help="The file to write; with --all the folder.", show_default=False)
    ],
    *,
    annotations: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help='The chains: `{"id": "...", "chain": ["...", "So the answer is: ..."]}` a line. Without it, those of '
            "the question file.",
            show_default=False,
        ),
    ] = None,
    distractors: Annotated[
        int | None,
        typer.Option(
            min=DISTRACTORS[0],
            max=DISTRACTORS[-1],
            metavar="M",
            help="So many beside the gold paragraphs; 0: no context.  [default: 2]",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        FormName | None, typer.Option(help="What stands behind `A:`.  [default: cot]", show_default=False)
    ] = None,
    style: Annotated[
        Style | None,
        typer.Option(help="With an instruction before each question or without.  [default: codex]", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Picks and shuffles paragraphs.")] = 0,
    everything: Annotated[
        bool, typer.Option("--all", help="Every form, style and M, named as the IRCoT authors named theirs.")
    ] = False,
    corpus: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Where a `jsonl` file's gold paragraphs are that it gives by id."),
    ] = None,
    json: Json = False,
) -> None:
    """Build demonstrations: gold paragraphs, M distractors, the question and what answers it.

    Example: `cotrail demonstrations build --dataset hotpotqa --questions train.json --annotations chains.jsonl
    --output demonstrations.txt`
    """
    if everything and not (distractors is None and form is None and style is None):
        raise InputError("--all builds every --form, --style and --distractors; leave these out, or leave out --all")
    annotated = _annotated(dataset, questions, annotations, corpus)
    if everything:
        wanted = {output / shape.filename: shape for shape in shapes(annotated)}
    else:
        shown = DISTRACTORS[2] if distractors is None else distractors
        wanted = {output: DemonstrationShape(form=AnswerForm(form or "cot"), style=style or "codex", distractors=shown)}
    written = _write(annotated, wanted, seed)
    if json:
        print_json({"files": written})
    else:
        _tell(written, output)


def _annotated(
    dataset: str, questions: Path, annotations: Path | None, corpus: str | None
) -> tuple[AnnotatedQuestion, ...]:
    chains = None if annotations is None else read_chains(annotations)
    lookup = settings().corpus_store.open(corpus).paragraphs if corpus else None
    loaded = load_annotated(dataset, questions, lookup)
    if annotations is not None and chains is not None:
        return with_chains(loaded, chains, annotations)
    own = tuple(each for each in loaded if each.chain)
    if not own:
        raise DemonstrationError(f"no question of {questions} comes with a chain; give chains with --annotations")
    return own


def _write(annotated: Sequence[AnnotatedQuestion], wanted: dict[Path, DemonstrationShape], seed: int) -> list[Written]:
    contents = {
        path: write_demonstrations(build_demonstrations(annotated, shape, seed)).encode()
        for path, shape in wanted.items()
    }
    for path, content in contents.items():
        if path.exists() and not (path.is_file() and path.read_bytes() == content):
            raise InputError(f"{path} is there already and holds something else; name another or remove it")
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return [_described(path, shape, annotated, seed) for path, shape in wanted.items()]


def _described(path: Path, shape: DemonstrationShape, annotated: Sequence[AnnotatedQuestion], seed: int) -> Written:
    shown = 0 if shape.form is AnswerForm.TITLES else shape.distractors
    fewer = sum(len(choose_distractors(each, shown, seed)) < shown for each in annotated)
    return Written(path=str(path), demonstrations=len(annotated), distractors=shown, fewer_distractors=fewer)


def _tell(written: Sequence[Written], output: Path) -> None:
    made = count(written[0].demonstrations, "demonstration")
    files = f"{len(written)} files of {made} each" if len(written) > 1 else made
    console().print(f"Wrote {files} to {output}.", soft_wrap=True)
    for lacking in _lacking(written):
        console().print(lacking, style="yellow", soft_wrap=True)


def _lacking(written: Iterable[Written]) -> list[str]:
    """A line for each number of distractors that some questions don't have."""
    fewer = {each.distractors: each for each in written if each.fewer_distractors}
    return [
        f"{each.fewer_distractors} of {count(each.demonstrations, 'question')} without {count(number, 'distractor')}: "
        "all that they have are there."
        for number, each in sorted(fewer.items())
    ]
