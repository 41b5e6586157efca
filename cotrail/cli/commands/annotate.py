"""`cotrail annotate` and `cotrail label`: what people say of sentences, answers and their causes."""

import getpass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from cotrail.cli.commands.errors import mark_each, read_rows, write_rows
from cotrail.cli.request_options import Json, RunName, Tags, option
from cotrail.cli.terminal.output import console, heading, in_json, print_json
from cotrail.cli.terminal.run_text import print_namesakes
from cotrail.common.humanize import count
from cotrail.common.printable_text import one_line
from cotrail.core.questions import Paragraph
from cotrail.errors import InputError
from cotrail.services.results import annotations
from cotrail.services.results.annotations import (
    AnnotationSummary,
    Chain,
    Marking,
    Place,
    SentenceMark,
    SentenceRow,
    places_in,
    rows_of,
)
from cotrail.services.runs import labels

KEYS = "y true · n not true · s skip · u undo · q quit; after y or n a note, if you like"

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
        summary = annotations.fill_in(run_id, annotator=name, rows=read_rows(marked, SentenceRow))
        if not in_json(summary, json=json):
            _print_summary(summary)
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
    chains = {chain.question_id: chain for chain in _sampled(run, sampled, seed)}
    marked = {(mark.question_id, mark.position) for mark in annotations.marks(run, annotator)}
    unmarked = [place for place in places_in(chains.values()) if place not in marked]

    def forget(place: Place) -> None:
        annotations.forget(run, question=place[0], position=place[1], annotator=annotator)

    def made(place: Place, key: str, note: str) -> SentenceMark:
        id_, position = place
        return SentenceMark(question_id=id_, position=position, annotator=annotator, is_true=key == "y", note=note)

    def show(place: Place) -> None:
        _show_sentence(screen, chains[place[0]], place[1], session.left)

    screen = console()
    session: Marking[Place, SentenceMark] = Marking(unmarked, lambda mark: annotations.mark(run, [mark]), forget)
    mark_each(screen, session, "true?", ("y", "n"), [KEYS], show, made)
    _print_summary(annotations.summarize_annotations(run, annotator=annotator, questions=list(chains)))


def _show_sentence(screen: Console, chain: Chain, position: int, left: int) -> None:
    """Prints the sentence below its paragraphs, its question and the chain so far."""
    screen.print(Rule(style="dim"), width=min(screen.width, RULE))
    for paragraph in chain.paragraphs[position]:
        screen.print(_paragraph(paragraph))
    screen.print()
    screen.print(heading(chain.question))
    for sentence in chain.sentences[:position]:
        screen.print(Padding(Text(sentence, style="dim"), (0, 0, 0, 3), expand=False))
    screen.print(Padding(Text(chain.sentences[position], style="bold yellow"), (0, 0, 0, 3), expand=False))
    to_go = f"{count(left, 'sentence')} to go"
    screen.print(f"sentence {position + 1} of question {chain.question_id}; {to_go}; {KEYS}", style="dim")


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
