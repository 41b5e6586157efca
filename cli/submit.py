"""`cotrail submit`: puts a run into the queue."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cotrail.cli.arguments import Json, completing
from cotrail.cli.following import follow
from cotrail.cli.output import console, print_json
from cotrail.cli.run_text import summarize, warn_of_namesakes
from cotrail.common.humanize import count
from cotrail.data.datasets.registry import DATASETS, find_dataset
from cotrail.errors import InputError
from cotrail.services import submission
from cotrail.services.prepared_run import PreparedRun
from cotrail.services.requests import REQUIRED, check_keys, make_request, read_run_file
from cotrail.services.store import open_store
from cotrail.systems.registry import SYSTEMS, find_system

_WHAT, _HOW, _MODEL = "What to run", "How the system works", "The model"
NAMES = tuple(dict.fromkeys(spec.name for spec in SYSTEMS))
_SYSTEMS = ", ".join(dict.fromkeys(f"{spec.name} ({spec.title})" for spec in SYSTEMS))


def _option(*names: str, text: str, panel: str, metavar: str | None = None, known: Iterable[str] = ()) -> Any:
    """An option; known: names that the shell completes."""
    complete = completing(lambda: known)
    return typer.Option(
        *names, help=text, rich_help_panel=panel, metavar=metavar, show_default=False, autocompletion=complete
    )


def submit(
    run_file: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN.toml",
            help="A TOML file with the options below by name (`retrieval_count = 4`), paths relative to it, and a "
            "table `[settings]` for the system's further settings. Options given here win.",
            show_default=False,
        ),
    ] = None,
    system: Annotated[
        str | None, _option("--system", text=f"{_SYSTEMS}.", panel=_WHAT, metavar="NAME", known=NAMES)
    ] = None,
    dataset: Annotated[
        str | None,
        _option(
            "--dataset",
            text=f"The dataset of the questions: {', '.join(DATASETS)} (your own).",
            panel=_WHAT,
            metavar="NAME",
            known=DATASETS,
        ),
    ] = None,
    questions: Annotated[str | None, _option("--questions", text="The file.", panel=_WHAT, metavar="PATH")] = None,
    official: Annotated[
        str | None,
        _option(
            "--official",
            text="The dataset's own file, where --questions is one that the authors of IRCoT processed and lacks "
            "answers that count (MuSiQue, 2WikiMultihopQA).",
            panel=_WHAT,
            metavar="PATH",
        ),
    ] = None,
    corpora: Annotated[
        list[str] | None,
        _option("--corpus", text="A corpus made by `cotrail index`. May be repeated.", panel=_WHAT, metavar="CORPUS"),
    ] = None,
    limit: Annotated[
        int | None, _option("--limit", text="Only the first N questions.", panel=_WHAT, metavar="N")
    ] = None,
    reader: Annotated[
        str | None,
        _option(
            "--reader",
            text="`direct` (the default), `cot`, or `none`: what IRCoT's own chain states, or no answer.",
            panel=_HOW,
            metavar="FORM",
        ),
    ] = None,
    rules: Annotated[
        str | None,
        _option(
            "--rules",
            text="`paper` (the default), or `released`: as the authors' code does where it departs from the paper.",
            panel=_HOW,
            metavar="NAME",
        ),
    ] = None,
    demonstrations: Annotated[
        str | None,
        _option(
            "--demonstrations",
            text="Solved examples that prompts begin with; none without this.",
            panel=_HOW,
            metavar="PATH",
        ),
    ] = None,
    title_demonstrations: Annotated[
        str | None,
        _option(
            "--title-demonstrations",
            text="Solved examples of naming pages, for questions about a passage (IIRC).",
            panel=_HOW,
            metavar="PATH",
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        _option(
            "--prompt",
            text="The words of the system's prompt, with {question} where the question stands; its own without this.",
            panel=_HOW,
            metavar="PATH",
        ),
    ] = None,
    sets: Annotated[
        str | None,
        _option(
            "--sets",
            text="Which of the demonstrations are shown, in which order: a JSON file of lists of ids, or `released`: "
            "the sets of IRCoT's authors.",
            panel=_HOW,
            metavar="PATH",
        ),
    ] = None,
    set_number: Annotated[
        int | None,
        _option("--set-number", text="Which of the sets, from 1, which is the default.", panel=_HOW, metavar="N"),
    ] = None,
    retrieval_count: Annotated[
        int | None, _option("--retrieval-count", text="Paragraphs a search (K).", panel=_HOW, metavar="K")
    ] = None,
    max_sentences: Annotated[
        int | None, _option("--max-sentences", text="Sentences a chain, at most.", panel=_HOW, metavar="N")
    ] = None,
    task: Annotated[
        str | None,
        _option(
            "--task",
            text="`commonsense` (yes or no), `temporal` (a text) or `tabular` (true or false), for rethinking and its "
            "baselines; the dataset's own by default.",
            panel=_HOW,
            metavar="NAME",
        ),
    ] = None,
    chains: Annotated[
        int | None, _option("--chains", text="How many chains of thought are sampled.", panel=_HOW, metavar="N")
    ] = None,
    variant: Annotated[
        str | None,
        _option(
            "--variant",
            text="Of rethinking: `basic` (the default), fact `selection`, or fact `generation`.",
            panel=_HOW,
            metavar="NAME",
        ),
    ] = None,
    model: Annotated[
        str | None,
        _option("--model", text="A name in `cotrail models`, which marks the default.", panel=_MODEL, metavar="NAME"),
    ] = None,
    profile: Annotated[
        str | None,
        _option(
            "--profile",
            text="`fast`, or `deterministic`: the same bytes whatever happens; the latter by default where chains are "
            "sampled.",
            panel=_MODEL,
            metavar="NAME",
        ),
    ] = None,
    embedder: Annotated[
        str | None,
        _option("--embedder", text="What compares sentences, for rethinking.", panel=_MODEL, metavar="NAME"),
    ] = None,
    entailer: Annotated[
        str | None,
        _option(
            "--entailer",
            text="The model that judges whether evidence entails a sentence.",
            panel=_MODEL,
            metavar="NAME",
        ),
    ] = None,
    extractor: Annotated[
        str | None,
        _option("--extractor", text="The model that reads answers out of paragraphs.", panel=_MODEL, metavar="NAME"),
    ] = None,
    duplicate_rater: Annotated[
        str | None,
        _option(
            "--duplicate-rater", text="The model that finds questions that ask the same.", panel=_MODEL, metavar="NAME"
        ),
    ] = None,
    relevance_rater: Annotated[
        str | None,
        _option("--relevance-rater", text="The model that scores how far texts answer.", panel=_MODEL, metavar="NAME"),
    ] = None,
    temperature: Annotated[
        float | None,
        _option("--temperature", text="0 (the default) takes the likeliest.", panel=_MODEL, metavar="T"),
    ] = None,
    seed: Annotated[
        int | None, _option("--seed", text="The seed of sampling; 0 by default.", panel=_MODEL, metavar="N")
    ] = None,
    priority: Annotated[
        int | None,
        _option(
            "--priority",
            text="Questions of runs with a higher number begin first; 0 by default.",
            panel=_WHAT,
            metavar="N",
        ),
    ] = None,
    name: Annotated[
        str | None,
        _option("--name", text="A name for the run, for every RUN argument.", panel=_WHAT, metavar="NAME"),
    ] = None,
    tags: Annotated[
        list[str] | None,
        _option("--tag", text="A tag, to filter runs by. May be repeated.", panel=_WHAT, metavar="TAG"),
    ] = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until the run is done.")] = False,
    json: Json = False,
) -> None:
    """Submit a run to the queue and print its id.

    Everything is checked before anything is written. Workers carry it out; this command may end or be ended.

    Example: `cotrail submit --system ircot --dataset jsonl --questions questions.jsonl --corpus mine --wait`
    """
    options = {
        "system": system,
        "dataset": dataset,
        "questions": questions,
        "official": official,
        **_named_corpora(corpora or []),
        "limit": limit,
        "reader": reader,
        "rules": rules,
        "demonstrations": demonstrations,
        "title_demonstrations": title_demonstrations,
        "prompt": prompt,
        "sets": sets,
        "set_number": set_number,
        "retrieval_count": retrieval_count,
        "max_sentences": max_sentences,
        "task": task,
        "chains": chains,
        "variant": variant,
        "model": model,
        "profile": profile,
        "embedder": embedder,
        "entailer": entailer,
        "extractor": extractor,
        "duplicate_rater": duplicate_rater,
        "relevance_rater": relevance_rater,
        "temperature": temperature,
        "seed": seed,
        "priority": priority,
        "name": name,
        "tags": tags or None,
    }
    given = _read(run_file) if run_file else {}
    places = dict.fromkeys(given, str(run_file))
    chosen = {key: value for key, value in options.items() if value is not None}
    if corpora:
        given = {key: value for key, value in given.items() if key not in ("corpus", "corpora")}
    given |= chosen
    places |= {key: f"--{key.replace('_', '-')}" for key in chosen}
    _check_named(given)
    _submit(submission.prepare(make_request(given, places)), wait=wait, json=json)


def _named_corpora(names: Sequence[str]) -> dict[str, Any]:
    return {"corpora": names} if len(names) > 1 else {"corpus": next(iter(names), None)}


def _read(run_file: Path) -> dict[str, Any]:
    if run_file.suffix in (".json", ".jsonl"):
        raise InputError(f"{run_file} can't be a run file, which is TOML; a file of questions goes behind --questions")
    given = read_run_file(run_file)
    check_keys(given, str(run_file))
    return given


def _check_named(given: Mapping[str, Any]) -> None:
    """Refuses what is missing, and before that a name that is wrong, which says more than what is missing beside it."""
    missing = next((field for field in REQUIRED if given.get(field) is None), None)
    if missing is None:
        return
    for field, check in (("system", find_system), ("dataset", find_dataset)):
        if isinstance(name := given.get(field), str):
            check(name)
    check_keys(given)
    raise InputError(f"no {missing} given; name it with --{missing} or in the run file")


def _submit(prepared: PreparedRun, *, wait: bool, json: bool) -> None:
    run = prepared.submission.id
    size = len(prepared.questions)
    for warning in _warnings(prepared):
        console(stderr=True).print(warning, style="yellow", soft_wrap=True)
    with open_store() as engine:
        submission.submit(engine, prepared)
        warn_of_namesakes(engine, run, prepared.submission.labels.name)
        if not wait:
            _print_submitted(run, size, json=json)
            return
        if not json:
            console().print(f"Submitted {run} with {count(size, 'question')}.", soft_wrap=True)
        progress = follow(engine, run, stderr=json)
        raise typer.Exit(summarize(engine, progress, json=json))


def _warnings(prepared: PreparedRun) -> list[str]:
    if not prepared.missing_gold:
        return list(prepared.notes)
    missing = (
        f"{count(prepared.missing_gold, 'gold paragraph')} of these questions not in the corpus "
        f"{' or '.join(prepared.submission.binding.corpora)}: paragraph recall can't reach 1. "
        "`cotrail data build` makes a corpus that has them."
    )
    return [missing, *prepared.notes]


def _print_submitted(run: str, size: int, *, json: bool) -> None:
    if json:
        print_json({"run": run, "questions": size})
        return
    typer.echo(run)
    hint = f"{count(size, 'question')} in the queue. `cotrail watch {run}` shows progress."
    console(stderr=True).print(hint, style="dim", soft_wrap=True)
