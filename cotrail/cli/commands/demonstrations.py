"""`cotrail demonstrations`: builds demonstration files from annotated questions, or from chains of a run."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from cotrail.cli.request_options import Json, RunName, option
from cotrail.cli.terminal.output import console, in_json
from cotrail.common.humanize import count
from cotrail.core.demonstrations import AnswerForm
from cotrail.data.datasets.registry import DATASETS
from cotrail.data.demonstrations.building import DISTRACTORS, DemonstrationShape, FormName, Style
from cotrail.data.demonstrations.self_written import Simple
from cotrail.errors import InputError
from cotrail.services.library.datasets import BuildRequest, WrittenDemonstrations
from cotrail.services.library.datasets import build as build_files
from cotrail.services.results.recorded_chains import SelfWrittenRequest, build_from_run

demonstrations = typer.Typer(
    name="demonstrations", help="Build demonstrations from questions or a run.", no_args_is_help=True
)


@demonstrations.command()
def build(
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
