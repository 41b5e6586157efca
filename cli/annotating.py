"""`cotrail annotate`: a person says which sentences of the chains of thought aren't true."""

import getpass
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text
from sqlalchemy import Connection, Engine

from cli.annotation_files import Place, checked, lines_of, read_lines, write_lines
from cli.output import console, count, heading
from cli.store import RunName, open_store
from cotrail.common.printable_text import one_line
from cotrail.core.paragraphs import Paragraph
from cotrail.errors import InputError
from cotrail.evaluation.metrics.factual_errors import SentenceMark, facts, factual_errors, sample
from models.queries.annotations import (
    Chain,
    forget_annotation,
    question_ids,
    read_annotations,
    read_chains,
    read_marks,
    record_annotations,
)
from models.queries.progress import RunRecord, read_run, resolve_run

KEYS = "y true · n not true · s skip · u undo · q quit; behind y or n a note, if you like"

Key = Literal["y", "n", "s", "u", "q"]


def annotate(
    run: RunName,
    sampled: Annotated[
        int, typer.Option("--sample", min=1, metavar="N", help="How many questions, drawn by the seed.")
    ] = 40,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Draws the same questions in every run over the same questions.")
    ] = 0,
    annotator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who marks; by default the system's user.", show_default=False),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Write the sentences into this file, to be marked there."),
    ] = None,
    marked: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="Store the marks (`is_true`, `note`) of such a file."),
    ] = None,
) -> None:
    """Mark which sentences of a run's chains of thought aren't true.

    Each sentence before the one that states the answer is shown with its question and the paragraphs that were there.
    What is marked is stored at once: quit when you like, and the same command goes on.
    """
    if export and marked:
        raise InputError("--export and --import can't go together; export, fill in `is_true`, then import")
    name = annotator_name(annotator)
    with open_store() as engine:
        with engine.connect() as connection:
            record = read_run(connection, resolve_run(connection, run))
        if marked:
            _import(engine, record, name, marked)
        elif export:
            _export(engine, record, name, export, sampled, seed)
        else:
            _ask(engine, record, name, sampled, seed)


LONGEST_NAME = 200
"""How many characters an annotator's name may have: it is part of a key in the database."""


def annotator_name(given: str | None) -> str:
    """Who marks; InputError where that isn't known."""
    try:
        name = (getpass.getuser() if given is None else given).strip()
    except (KeyError, OSError):
        name = ""
    if len(name) > LONGEST_NAME:
        raise InputError(f"a name of {len(name):,} characters is too long; give one of at most {LONGEST_NAME}")
    if not name or not name.isprintable():
        raise InputError("it isn't known who marks; say it with --annotator NAME")
    return name


def _ask(engine: Engine, record: RunRecord, annotator: str, sampled: int, seed: int) -> None:
    with engine.connect() as connection:
        chains = _sampled(connection, record, sampled, seed)
        known = {(mark.question_id, mark.position) for mark in read_marks(connection, record.id, annotator)}
    screen = console()
    session = Session(engine, record.id, annotator, chains, known)
    while (place := session.place) is not None:
        session.show(screen, place)
        key, note = ask_key(screen)
        if key == "q":
            break
        session.take(place, key, note)
    with engine.connect() as connection:
        _summarize(connection, screen, record, chains, annotator)


def ask_key(screen: Console) -> tuple[Key, str]:
    """What the person types, and the note behind it; asks again where it means nothing."""
    while True:
        typed = typer.prompt("true?", prompt_suffix=" ").strip()
        key, _, note = typed.partition(" ")
        match key.lower():
            case "y" | "n" as known if note.isprintable():
                return known, note.strip()
            case "s" | "u" | "q" as known if not note:
                return known, ""
        screen.print(KEYS, style="dim")


class Session:
    """A person's way through the sentences of the sampled chains; each mark is stored as it is made."""

    def __init__(self, engine: Engine, run_id: str, annotator: str, chains: Sequence[Chain], known: set[Place]) -> None:
        self._engine, self._run_id, self._annotator = engine, run_id, annotator
        self._chains = {chain.question_id: chain for chain in chains}
        places = [(chain.question_id, position) for chain in chains for position in facts(chain.sentences)]
        self._open = [place for place in places if place not in known]
        self._passed = 0

    @property
    def place(self) -> Place | None:
        """The sentence to be judged next; None where none is left."""
        return self._open[self._passed] if self._passed < len(self._open) else None

    def take(self, place: Place, key: Key, note: str) -> None:
        """Does what a key says: marks the sentence, leaves it for another time, or goes back to the one before."""
        if key == "u":
            self._go_back()
            return
        if key in ("y", "n"):
            self._store(self._mark(place, is_true=key == "y", note=note))
        self._passed += 1

    def show(self, screen: Console, place: Place) -> None:
        """Prints the sentence below its paragraphs, its question and the chain so far."""
        key, position = place
        chain = self._chains[key]
        screen.print(Rule(style="dim"))
        for paragraph in chain.paragraphs[position]:
            screen.print(_paragraph(paragraph))
        screen.print()
        screen.print(heading(chain.question))
        for sentence in chain.sentences[:position]:
            screen.print(Padding(Text(sentence, style="dim"), (0, 0, 0, 3)))
        screen.print(Padding(Text(chain.sentences[position], style="bold yellow"), (0, 0, 0, 3)))
        left = count(len(self._open) - self._passed, "sentence")
        screen.print(f"sentence {position + 1} of question {key}; {left} to go; {KEYS}", style="dim")

    def _go_back(self) -> None:
        if self._passed:
            self._passed -= 1
            with self._engine.begin() as connection:
                forget_annotation(connection, self._run_id, self._mark(self._open[self._passed], is_true=True))

    def _mark(self, place: Place, *, is_true: bool, note: str = "") -> SentenceMark:
        key, position = place
        return SentenceMark(question_id=key, position=position, annotator=self._annotator, is_true=is_true, note=note)

    def _store(self, mark: SentenceMark) -> None:
        with self._engine.begin() as connection:
            record_annotations(connection, self._run_id, [mark])


def _paragraph(paragraph: Paragraph) -> Text:
    return Text(one_line(paragraph.title), style="bold").append(f"  {one_line(paragraph.text)}", style="not bold dim")


def _sampled(connection: Connection, record: RunRecord, sampled: int, seed: int) -> list[Chain]:
    """The chains of the sampled questions; InputError where there is none to judge."""
    keys = question_ids(connection, record.id)
    drawn = sample(keys, sampled, seed)
    chains = list(read_chains(connection, record, [key for key in keys if key in drawn]))
    if not chains:
        raise InputError(
            f"there is no chain of thought to judge in run {record.id}: the {count(len(drawn), 'sampled question')} "
            "either isn't finished or was answered without one; wait for the run, or annotate one of IRCoT or with "
            "the reader `cot`"
        )
    if len(chains) < len(drawn):
        left_out = count(len(drawn) - len(chains), "sampled question")
        console().print(f"{left_out} without a finished chain of thought left out", style="dim")
    return chains


def _summarize(
    connection: Connection, screen: Console, record: RunRecord, chains: Sequence[Chain], annotator: str
) -> None:
    places = {(chain.question_id, position) for chain in chains for position in facts(chain.sentences)}
    marked = {(mark.question_id, mark.position) for mark in read_marks(connection, record.id, annotator)} & places
    errors = factual_errors(read_annotations(connection, record.id))
    screen.print(
        f"{record.id}: {annotator} has marked {len(marked)} of {count(len(places), 'sentence')} in "
        f"{count(len(chains), 'chain')}. By all annotators together, {count(len(errors), 'chain')} judged so far, "
        f"{sum(errors.values())} with a factual error; a sentence counts as untrue where the majority says so or "
        "annotators are divided.",
        soft_wrap=True,
    )


def _export(engine: Engine, record: RunRecord, annotator: str, path: Path, sampled: int, seed: int) -> None:
    with engine.connect() as connection:
        chains = _sampled(connection, record, sampled, seed)
        marks = {(mark.question_id, mark.position): mark for mark in read_marks(connection, record.id, annotator)}
    written = list(lines_of(record.id, chains, marks))
    write_lines(path, written)
    screen = console()
    screen.print(
        f"{count(len(written), 'sentence')} of {count(len(chains), 'chain')} in {path}. Fill in `is_true` (true or "
        f"false), then: cotrail annotate {record.id} --import {path}",
        soft_wrap=True,
    )


def _import(engine: Engine, record: RunRecord, annotator: str, path: Path) -> None:
    filled = read_lines(path)
    with engine.connect() as connection:
        known = set(question_ids(connection, record.id))
        asked = {line.question_id for line in filled.values()} & known
        chains = {chain.question_id: chain for chain in read_chains(connection, record, asked)}
    marks = checked(record.id, annotator, filled, known, chains)
    with engine.begin() as connection:
        record_annotations(connection, record.id, marks)
    with engine.connect() as connection:
        _summarize(connection, console(), record, list(chains.values()), annotator)
