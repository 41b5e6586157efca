"""What a run found: `cotrail trace`, `report`, `export` and `view`."""

import shutil
import sys
import webbrowser
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cotrail.cli.request_options import Json, Overwrite, RunName, argument, option
from cotrail.cli.terminal import shown_steps
from cotrail.cli.terminal.diagnosis import start, startable_stack
from cotrail.cli.terminal.output import check_free, console, grid, heading, in_json, print_json, write_text
from cotrail.cli.terminal.verdict_tables import print_verdicts
from cotrail.common.humanize import count, percent
from cotrail.common.printable_text import cut, one_line
from cotrail.common.text_files import write_whole
from cotrail.errors import InputError
from cotrail.faithfulness.weighing import Weighing
from cotrail.services.operations.operation import server_address
from cotrail.services.results import exporting, questions, steps
from cotrail.services.results.causes import details_in
from cotrail.services.results.export_formats import FORMATS, export_answers
from cotrail.services.results.questions import ShownQuestion
from cotrail.services.results.reasoning import FoundGold, where
from cotrail.services.results.reports import run_report
from cotrail.services.results.steps import QuestionStatus
from cotrail.services.runs import labels
from cotrail.systems.judge.rubric import Judgement
from cotrail.systems.searchain.tree import Tree
from cotrail.viewer.page import link


def trace(
    run: RunName,
    question: Annotated[str, argument("trace.question")],
    prompt: Annotated[int | None, option("trace.prompt")] = None,
    *,
    full: Annotated[bool, option("trace.full")] = False,
    thoughts: Annotated[bool, option("trace.thoughts")] = False,
    json: Json = False,
) -> None:
    """Show how a question was answered: each search with what it found, each sentence, and the answer.

    `+` marks a paragraph that was collected at this step, `★` one that the dataset marks as gold; at the end, `✗` names
    each gold paragraph that wasn't collected, and what judges say of the answer follows.
    """
    if prompt is not None:
        shown_steps.print_prompt(steps.show_prompt(run, question, prompt), json=json)
    elif json:
        print_json(questions.show_trace(run, question))
    else:
        screen, shown = console(), questions.show_question(run, question)
        _show(screen, shown, full=full, thoughts=thoughts)
        print_verdicts(screen, shown.verdicts)


def _show(screen: Console, shown: ShownQuestion, *, full: bool, thoughts: bool) -> None:
    screen.print(heading(shown.question))
    counted = count(len(shown.steps), "step")
    screen.print(f"{shown.question_id} in {shown.run}: {shown.status}, {counted}", style="dim")
    for step in shown.steps:
        screen.print()
        screen.print(shown_steps.step_head(step, shown.turns.get(step.sequence, "")))
        screen.print(Padding(shown_steps.step_body(step, full=full, thoughts=thoughts), (0, 0, 0, 3), expand=False))
    screen.print()
    if shown.details is not None:
        screen.print(_drawn(shown, full=full) or Text(shown_steps.json_of(shown.details)))
        screen.print()
    screen.print(_outcome(shown))


def _drawn(shown: ShownQuestion, *, full: bool) -> RenderableType | None:
    """The details of a question's answer; None where they have no form of their own."""
    match details_in(shown.system, shown.system_version, shown.details):
        case Weighing() as details:
            return shown_steps.weighed(details, shown.names)
        case Tree() as details:
            return shown_steps.reasoned(details, shown.names, full=full)
        case Judgement() as details:
            return shown_steps.judged(details, shown.judged, full=full)
    return None


def _outcome(shown: ShownQuestion) -> Table:
    table = grid("dim", "")
    if shown.status == QuestionStatus.FINISHED:
        table.add_row("answer", Text(shown.answer or "(empty)", style="bold"))
    elif shown.reason:
        table.add_row(shown.status, Text(f"{shown.reason.type}: {shown.reason.message}", style="red"))
    if shown.ended_by:
        table.add_row("ended by", shown.ended_by)
    table.add_row("gold", " / ".join(shown.gold_answers) or "none published")
    if shown.judged:  # a verdict is no answer to the question
        return table
    scores = shown.scores
    em, cover_em, rouge_l = scores["answer_em"], scores["cover_em"], scores["rouge_l"]
    agreement = [f"EM {percent(em)}", f"F1 {percent(scores['answer_f1'])}"]
    if cover_em != em:
        agreement.append(f"cover EM {percent(cover_em)}")
    if rouge_l is not None:
        agreement.append(f"ROUGE-L {percent(rouge_l)}")
    agreement.append(f"paragraph recall {percent(scores['paragraph_recall'])}")
    table.add_row("scores", ", ".join(agreement))
    for place, gold in enumerate(shown.gold_paragraphs):
        table.add_row("" if place else "gold paragraphs", _gold(gold))
    return table


def _gold(gold: FoundGold) -> Text:
    text = Text("★ " if gold.collected else "✗ ", style="yellow" if gold.collected else "red")
    text.append(one_line(cut(gold.name, shown_steps.SNIPPET)), style="not dim bold")
    identifier = f"  {one_line(gold.id)}" if gold.id else ""
    text.append(f"{identifier}  {where(gold)}", style="not bold dim" if gold.collected else "not bold red")
    if not gold.collected and gold.title:
        text.append(f"\n  {cut(gold.text, shown_steps.SNIPPET)}", style="not bold dim")
    return text


def report(
    run: RunName, html: Annotated[Path, option("report.html")], *, overwrite: Overwrite = False, json: Json = False
) -> None:
    """Write a run as one HTML file: configuration, scores, and the reasoning behind every answer.

    The file needs no network, and everything is there without its script.

    Example: `cotrail report latest --html report.html`
    """
    found = labels.identify(run)
    check_free(html, overwrite=overwrite)
    write_text(html, b"".join(run_report.show_report(found.run)).decode(), "choose another --html")
    if not in_json({"run": found.run, "html": str(html), "questions": found.questions}, json=json):
        console().print(f"Wrote {html} with {count(found.questions, 'question')}.", soft_wrap=True)


ExportForm = Literal[
    "jsonl", "hotpotqa", "musique", "trec", "trec-steps", "qrels", "qrels-steps",
    "chat", "preferences", "inspect", "otlp", "parquet", "card", "seen", "browsecomp-plus",
]  # fmt: skip
"""`FormatName`, which the help of the command doesn't import, and the form that is a folder."""

PARTS = {"chat": "conversation", "preferences": "pair", "seen": "paragraph"}
"""What a line is of the forms that have several, or none, for a question."""


def export(
    run: RunName,
    form: Annotated[ExportForm, option("export.format")] = "jsonl",
    output: Annotated[Path | None, option("export.output")] = None,
    reward: Annotated[str, option("export.reward")] = "answer_em",
    against: Annotated[str, option("export.against")] = "",
    *,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write a run's answers, and the chains and paragraphs behind them.

    A line of `jsonl` has what judges say of its question, too (`verdicts`). Without --output, which a folder and a
    binary file need, they are printed, in the form of --format, and --json changes nothing.

    Example: `cotrail export latest --format jsonl --output run.jsonl`
    """
    if form == "browsecomp-plus":
        found = labels.identify(run)
        _write_folder(output, map(_file, _lines(exporting.export_files(found.run))))
    elif output is None:
        if FORMATS[form].binary:
            raise InputError(f"--format {form} is no text; name the file to write with --output")
        sys.stdout.buffer.writelines(export_answers(run, form, reward, against))
        sys.stdout.buffer.flush()
        return
    else:
        found = labels.identify(run)
        check_free(output, overwrite=overwrite)
        _write(output, export_answers(found.run, form, reward, against))
    if not in_json({"run": found.run, "format": form, "output": str(output), "questions": found.questions}, json=json):
        size = count(found.questions, "question")
        if form in PARTS and output is not None:
            with output.open("rb") as written:
                size = f"{count(sum(1 for _ in written), PARTS[form])} of {size}"
        console().print(f"Wrote {output} with {size}.", soft_wrap=True)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of what comes in pieces, wherever these end."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


def _file(line: bytes) -> tuple[str, bytes]:
    """The name of a file and its content."""
    name, text = msgspec.json.decode(line, type=tuple[str, str])
    return Path(name).name, text.encode()


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    try:
        write_whole(path, chunks)
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); choose another --output") from error


def _write_folder(path: Path | None, files: Iterable[tuple[str, bytes]]) -> None:
    """Writes a folder of files, which may be there if it is empty; a part of it is never seen."""
    if path is None:
        raise InputError("--format browsecomp-plus writes a file for each question; name their folder with --output")
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.mkdir()
        for name, content in files:
            (draft / name).write_bytes(content)
        draft.replace(path)
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); choose a new folder as --output") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def view(
    run: Annotated[str | None, argument("view.run")] = None,
    question: Annotated[str | None, argument("view.question")] = None,
) -> None:
    """Open the viewer in the browser: the list of runs, a run, or a question of it.

    Prints the page's address too. The local stack is started where its service doesn't run.

    Example: `cotrail view latest 1`
    """
    service = server_address() or _started()
    address = service + _page(run, question)
    console().print(address, soft_wrap=True)
    webbrowser.open(address)


def _page(run: str | None, question: str | None) -> str:
    if run is None:
        return link()
    found = labels.identify(run).run
    return link("runs", found) if question is None else link("runs", found, "questions", question)


def _started() -> str:
    """The address of the local stack's service, which runs then."""
    stack = startable_stack()
    if stack.find("api") is None:
        screen = console(stderr=True)
        start(stack, screen)
        screen.print("The local stack is started; `cotrail down` stops it.", soft_wrap=True)
    return stack.kept_address().url
