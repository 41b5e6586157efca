"""`cotrail annotate` and `cotrail label`: what people say of sentences, answers and their causes."""

import getpass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from cotrail.cli.commands.errors import read_rows, write_rows
from cotrail.cli.request_options import Json, RunName, Tags, option
from cotrail.cli.terminal.output import console, heading, in_json, print_json
from cotrail.cli.terminal.run_text import print_namesakes
from cotrail.common.humanize import count
from cotrail.common.printable_text import one_line
from cotrail.core.questions import Paragraph
from cotrail.errors import InputError
from cotrail.services.results import annotations
from cotrail.services.results.annotations import (
    AnnotationSession,
    AnnotationSummary,
    Chain,
    Place,
    SentenceMark,
    SentenceRow,
    rows_of,
)
from cotrail.services.runs import labels

KEYS = "y true · n not true · s skip · u undo · q quit; after y or n a note, if you like"

Key = Literal["y", "n", "s", "u", "q"]

LONGEST_NAME = 200
"""The longest name of an annotator, in characters: it is part of a key in the database."""

RULE = 100
"""The most columns of the line between two chains."""


def annotate(
    run: RunName,
    sampled: Annotated[int, option("annotate.sample")] = 40,
    seed: Annotated[int, option("annotate.seed")] = 0,
    annotator: Annotated[str | None, option("annotate.annotator")] = None,
    export: Annotated[Path | None, option("annotate.export")] = None,
    marked: Annotated[Path | None, option("annotate.import")] = None,
    *,
    causes: Annotated[bool, option("annotate.causes")] = False,
    json: Json = False,
) -> None:
    """Mark which sentences of a run's chains of thought aren't true, or label why its answers are wrong.

    Each sentence before the one that states the answer is shown with its question and the paragraphs that were there;
    with `--causes`, each wrong answer with its chain, its gold paragraphs, and the cause that the rules found.
    What you say is stored at once: quit when you like, and the same command continues.
    """
    if json and not (export or marked):
        raise InputError("--json is for --export and --import; leave it out to be asked one by one")
    if export and marked:
        raise InputError("--export and --import can't go together; export, fill the file in, then import")
    name = annotator_name(annotator)
    if causes:
        # Imported here, as marking sentences needs no rules for causes.
        from cotrail.cli.commands.errors import label_causes

        label_causes(run, name, sampled, seed, export, marked, json=json)
        return
    run_id = labels.identify(run).run
    if marked:
        _import(run_id, name, marked, json=json)
    elif export:
        _export(run_id, name, export, sampled, seed, json=json)
    else:
        _ask(run_id, name, sampled, seed)


def annotator_name(given: str | None) -> str:
    """The annotator's name, by default the system's user; InputError where neither is usable."""
    try:
        name = (getpass.getuser() if given is None else given).strip()
    except (KeyError, OSError):
        name = ""
    if len(name) > LONGEST_NAME:
        raise InputError(f"a name of {len(name):,} characters is too long; give one of at most {LONGEST_NAME}")
    if not name or not name.isprintable():
        raise InputError("the annotator has no usable name; give one with --annotator NAME")
    return name


def _ask(run: str, annotator: str, sampled: int, seed: int) -> None:
    chains = _sampled(run, sampled, seed)
    screen = console()
    marked = {(mark.question_id, mark.position) for mark in annotations.marks(run, annotator)}

    def forget(mark: SentenceMark) -> None:
        annotations.forget(run, question=mark.question_id, position=mark.position, annotator=annotator)

    session = AnnotationSession(annotator, chains, marked, lambda mark: annotations.mark(run, [mark]), forget)
    while (place := session.next) is not None:
        show_sentence(screen, session, place)
        key, note = ask_key(screen)
        if key == "q":
            break
        apply_key(session, place, key, note)
    questions = [chain.question_id for chain in chains]
    _print_summary(annotations.summarize_annotations(run, annotator=annotator, questions=questions))


def ask_key(screen: Console) -> tuple[Key, str]:
    """The key that the person types, and the note after it; asks again where it is none."""
    while True:
        typed = typer.prompt("true?", prompt_suffix=" ").strip()
        key, _, note = typed.partition(" ")
        match key.lower():
            # Arrow keys arrive as escape sequences, which would become part of the note.
            case "y" | "n" as known if note.isprintable():
                return known, note.strip()
            case "s" | "u" | "q" as known if not note:
                return known, ""
        screen.print(KEYS, style="dim")


def apply_key(session: AnnotationSession, place: Place, key: Key, note: str) -> None:
    """Applies a key: marks the sentence, leaves it for another time, or goes back to the one before."""
    match key:
        case "u":
            session.undo()
        case "y" | "n":
            session.mark(place, note, is_true=key == "y")
        case _:
            session.skip()


def show_sentence(screen: Console, session: AnnotationSession, place: Place) -> None:
    """Prints the sentence below its paragraphs, its question and the chain so far."""
    key, position = place
    chain = session.chain(key)
    screen.print(Rule(style="dim"), width=min(screen.width, RULE))
    for paragraph in chain.paragraphs[position]:
        screen.print(_paragraph(paragraph))
    screen.print()
    screen.print(heading(chain.question))
    for sentence in chain.sentences[:position]:
        screen.print(Padding(Text(sentence, style="dim"), (0, 0, 0, 3), expand=False))
    screen.print(Padding(Text(chain.sentences[position], style="bold yellow"), (0, 0, 0, 3), expand=False))
    left = count(session.left, "sentence")
    screen.print(f"sentence {position + 1} of question {key}; {left} to go; {KEYS}", style="dim")


def _paragraph(paragraph: Paragraph) -> Text:
    return Text(one_line(paragraph.title), style="bold").append(f"  {one_line(paragraph.text)}", style="not bold dim")


def _sampled(run: str, size: int, seed: int) -> tuple[Chain, ...]:
    chains = annotations.chains(run, size=size, seed=seed)
    if chains.left_out:
        left_out = count(chains.left_out, "sampled question")
        console(stderr=True).print(f"{left_out} without a finished chain of thought left out", style="dim")
    return chains.chains


def _print_summary(summary: AnnotationSummary) -> None:
    console().print(
        f"{summary.run}: {summary.annotator} has marked {summary.marked:,} of {count(summary.sentences, 'sentence')} "
        f"in {count(summary.chains, 'chain')}. By all annotators together, {count(summary.judged, 'chain')} judged so "
        f"far, {summary.erroneous:,} with a factual error; a sentence counts as untrue where the majority says so or "
        "annotators are divided.",
        soft_wrap=True,
    )


def _export(run: str, annotator: str, path: Path, size: int, seed: int, *, json: bool) -> None:
    chains = _sampled(run, size, seed)
    rows = list(rows_of(run, chains, annotations.marks(run, annotator)))
    write_rows(path, rows)
    if json:
        described = {"run": run, "annotator": annotator, "export": str(path)}
        print_json({**described, "sentences": len(rows), "chains": len(chains)})
        return
    console().print(
        f"{count(len(rows), 'sentence')} of {count(len(chains), 'chain')} in {path}. Fill in `is_true` (true or "
        f"false), then: cotrail annotate {run} --import {path}",
        soft_wrap=True,
    )


def _import(run: str, annotator: str, path: Path, *, json: bool) -> None:
    summary = annotations.fill_in(run, annotator=annotator, rows=read_rows(path, SentenceRow))
    if not in_json(summary, json=json):
        _print_summary(summary)


# `cotrail label`: a run's name and tags.


def label(
    run: RunName,
    *,
    name: Annotated[str | None, option("label.name")] = None,
    tags: Tags = None,
    untag: Annotated[list[str] | None, option("label.untag")] = None,
    json: Json = False,
) -> None:
    """Name and tag a run, or print its name and tags. No digest covers them: they may change at any time.

    Example: `cotrail label latest --name baseline --tag table-2`
    """
    labelled = labels.label_run(run, name=name, add=tags or (), remove=untag or ())
    if name:
        print_namesakes(name, labels.list_namesakes(labelled.run))
    if in_json(labelled, json=json):
        return
    marks = [labelled.name or "no name", *(f"#{tag}" for tag in labelled.tags)]
    console().print(f"{labelled.run}: {', '.join(marks)}", soft_wrap=True)
