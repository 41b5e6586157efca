"""`cotrail annotate`: a person marks the sentences of chains of thought that aren't true."""

import getpass
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec.structs import asdict
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text
from sqlalchemy import Connection, Engine

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.output import console, heading, print_json
from cotrail.common.humanize import count
from cotrail.common.printable_text import one_line
from cotrail.core.paragraphs import Paragraph
from cotrail.errors import InputError
from cotrail.evaluation.metrics.factual_errors import SentenceMark, facts
from cotrail.models.commands.annotating import forget_annotation, record_annotations
from cotrail.models.queries.annotations import Chain, read_marks
from cotrail.models.queries.runs import RunRecord, read_run, resolve_run
from cotrail.services.annotations import Place, export_sentences, import_marks, sample_chains, summarize
from cotrail.services.store import open_store

KEYS = "y true · n not true · s skip · u undo · q quit; after y or n a note, if you like"

Key = Literal["y", "n", "s", "u", "q"]


def annotate(
    run: RunName,
    sampled: Annotated[int, typer.Option("--sample", min=1, metavar="N", help="How many questions to sample.")] = 40,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Draws the same questions in every run over the same questions.")
    ] = 0,
    annotator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who marks; by default the system's user.", show_default=False),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Write the sentences into this file, to mark them there."),
    ] = None,
    marked: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="Store the marks (`is_true`, `note`) of such a file."),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """Mark which sentences of a run's chains of thought aren't true.

    Each sentence before the one that states the answer is shown with its question and the paragraphs that were there.
    Each mark is stored at once: quit when you like, and the same command continues.
    """
    if json and not (export or marked):
        raise InputError("--json is for --export and --import; leave it out to be asked sentence by sentence")
    if export and marked:
        raise InputError("--export and --import can't go together; export, fill in `is_true`, then import")
    name = annotator_name(annotator)
    with open_store() as engine:
        with engine.connect() as connection:
            record = read_run(connection, resolve_run(connection, run))
        if marked:
            _import(engine, record, name, marked, json=json)
        elif export:
            _export(engine, record, name, export, sampled, seed, json=json)
        else:
            _ask(engine, record, name, sampled, seed)


LONGEST_NAME = 200
RULE = 100
"""The most columns of the line between two chains."""
"""The longest name of an annotator, in characters: it is part of a key in the database."""


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


def _ask(engine: Engine, record: RunRecord, annotator: str, sampled: int, seed: int) -> None:
    with engine.connect() as connection:
        chains = _sampled(connection, record, sampled, seed)
        known = {(mark.question_id, mark.position) for mark in read_marks(connection, record.id, annotator)}
    screen = console()
    session = AnnotationSession(engine, record.id, annotator, chains, known)
    while (place := session.place) is not None:
        session.show(screen, place)
        key, note = ask_key(screen)
        if key == "q":
            break
        session.apply(place, key, note)
    with engine.connect() as connection:
        _print_summary(connection, record, annotator, chains)


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


class AnnotationSession:
    """Annotation of sampled chains, sentence by sentence; each mark is stored at once."""

    def __init__(self, engine: Engine, run_id: str, annotator: str, chains: Sequence[Chain], known: set[Place]) -> None:
        self._engine, self._run_id, self._annotator = engine, run_id, annotator
        self._chains = {chain.question_id: chain for chain in chains}
        places = [(chain.question_id, position) for chain in chains for position in facts(chain.sentences)]
        self._open = [place for place in places if place not in known]
        self._passed = 0

    @property
    def place(self) -> Place | None:
        """The sentence to judge next; None where none is left."""
        return self._open[self._passed] if self._passed < len(self._open) else None

    def apply(self, place: Place, key: Key, note: str) -> None:
        """Applies a key: marks the sentence, leaves it for another time, or goes back to the one before."""
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
        screen.print(Rule(style="dim"), width=min(screen.width, RULE))
        for paragraph in chain.paragraphs[position]:
            screen.print(_paragraph(paragraph))
        screen.print()
        screen.print(heading(chain.question))
        for sentence in chain.sentences[:position]:
            screen.print(Padding(Text(sentence, style="dim"), (0, 0, 0, 3), expand=False))
        screen.print(Padding(Text(chain.sentences[position], style="bold yellow"), (0, 0, 0, 3), expand=False))
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


def _sampled(connection: Connection, record: RunRecord, size: int, seed: int) -> tuple[Chain, ...]:
    found = sample_chains(connection, record, size, seed)
    if found.left_out:
        left_out = count(found.left_out, "sampled question")
        console(stderr=True).print(f"{left_out} without a finished chain of thought left out", style="dim")
    return found.chains


def _print_summary(connection: Connection, record: RunRecord, annotator: str, chains: Sequence[Chain]) -> None:
    found = summarize(connection, record, annotator, chains)
    console().print(
        f"{record.id}: {annotator} has marked {found.marked:,} of {count(found.sentences, 'sentence')} in "
        f"{count(found.chains, 'chain')}. By all annotators together, {count(found.judged, 'chain')} judged so far, "
        f"{found.erroneous:,} with a factual error; a sentence counts as untrue where the majority says so or "
        "annotators are divided.",
        soft_wrap=True,
    )


def _export(engine: Engine, record: RunRecord, annotator: str, path: Path, size: int, seed: int, *, json: bool) -> None:
    with engine.connect() as connection:
        chains = _sampled(connection, record, size, seed)
        written = export_sentences(connection, record, annotator, chains, path)
    if json:
        described = {"run": record.id, "annotator": annotator, "export": str(path)}
        print_json({**described, "sentences": written, "chains": len(chains)})
        return
    console().print(
        f"{count(written, 'sentence')} of {count(len(chains), 'chain')} in {path}. Fill in `is_true` (true or "
        f"false), then: cotrail annotate {record.id} --import {path}",
        soft_wrap=True,
    )


def _import(engine: Engine, record: RunRecord, annotator: str, path: Path, *, json: bool) -> None:
    chains = import_marks(engine, record, annotator, path)
    with engine.connect() as connection:
        if json:
            found = summarize(connection, record, annotator, chains)
            print_json({"run": record.id, "annotator": annotator, **asdict(found)})
        else:
            _print_summary(connection, record, annotator, chains)
