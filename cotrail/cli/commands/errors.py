"""`cotrail errors`: the causes of a run's wrong answers; `cotrail annotate --causes`: a person labels them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer
from msgspec import Struct
from rich.console import Console
from rich.padding import Padding
from rich.progress import track
from rich.rule import Rule
from rich.text import Text

from cotrail.cli.request_options import Json, RunName, option
from cotrail.cli.terminal.output import INTERVAL, console, heading, in_json, print_rows, titled
from cotrail.common.humanize import count, number, percent, percent_range
from cotrail.common.json_files import problem_of
from cotrail.common.printable_text import one_line
from cotrail.common.text_files import MAX_FILE_BYTES, numbered_lines, opened
from cotrail.errors import InputError
from cotrail.services.results import cause_labels, causes
from cotrail.services.results.annotations import Marking
from cotrail.services.results.cause_labels import Case, CauseLabel, CauseRow, LabellingSummary, rows_of
from cotrail.services.results.causes import Cause, CauseCount, CheckedQuestion, LabelAgreement, RunErrors, WrongAnswer
from cotrail.services.runs import labels


def errors(
    run: RunName,
    *,
    questions: Annotated[bool, option("errors.questions")] = False,
    kinds: Annotated[bool, option("errors.kinds")] = False,
    figure: Annotated[Path | None, option("errors.figure")] = None,
    json: Json = False,
) -> None:
    """Say why a run's wrong answers are wrong, by rules over what is recorded.

    Labels by hand (`cotrail annotate RUN --causes`) stand next to the causes.

    Example: `cotrail errors latest --questions`
    """
    found = causes.show_errors(run, followed)
    if figure:
        _draw(found, figure)
    if in_json(found, json=json):
        return
    _print(console(), found, kinds=kinds, questions=questions)
    if figure:
        console().print(f"Wrote {figure}.", soft_wrap=True)


def followed(checked: Iterable[CheckedQuestion], size: int) -> Iterable[CheckedQuestion]:
    """The same questions; a bar on a terminal moves with each."""
    screen = console(stderr=True)
    return track(checked, "Questions", size, console=screen, transient=True, disable=not screen.is_terminal)


def _draw(found: RunErrors, path: Path) -> None:
    if not found.causes:
        raise InputError("there is no wrong answer to draw; leave --figure out")
    # Imported here, as it brings what draws reports.
    from cotrail.services.results.reports.charts import write_cause_figure

    write_cause_figure(found, path)


def _print(screen: Console, found: RunErrors, *, kinds: bool, questions: bool) -> None:
    outcomes = ", ".join(f"{number:,} {name}" for name, number in found.outcomes.items() if number)
    screen.print(f"{found.run}: {count(found.questions, 'question')}: {outcomes}")
    if not found.causes:
        return
    _print_causes(screen, found.causes)
    for agreement in found.agreements:
        screen.print()
        _print_agreement(screen, agreement)
    if kinds:
        for sort, counts in found.kinds.items():
            screen.print()
            _print_counts(screen, sort, counts)
    if questions:
        screen.print()
        for each in found.wrong:
            _print_question(screen, each)


def _print_causes(screen: Console, causes: Iterable[CauseCount]) -> None:
    titles = ("cause", "answers", "share", INTERVAL, "signs")
    columns = titled(*titles, right=("answers", "share", "signs"), whole=(INTERVAL,), bold=("answers",))
    print_rows(screen, columns, [list(_cells(each)) for each in causes])
    screen.print("cause: the first that applies; signs: the wrong answers to which it applies at all", style="dim")


def _cells(each: CauseCount) -> Iterator[str]:
    yield each.cause
    yield f"{each.questions:,}"
    yield percent(each.share)
    yield percent_range(each.interval.low, each.interval.high) if each.interval else ""
    yield f"{each.signs:,}"


def _print_agreement(screen: Console, agreement: LabelAgreement) -> None:
    interval = agreement.interval
    within = f" (95 %: {percent_range(interval.low, interval.high)})" if interval else ""
    kappa = "" if agreement.kappa is None else f", Cohen's kappa {number(agreement.kappa, 2)}"
    screen.print(
        f"{agreement.annotator} labelled {count(agreement.labels, 'answer')}: {agreement.agreed:,} as the rules do, "
        f"{percent(agreement.share)}{within}{kappa}",
        soft_wrap=True,
    )
    _print_counts(screen, "by the rules", agreement.confusion)


def _print_counts(
    screen: Console, title: str, counts: "dict[Cause, dict[Cause, int]] | dict[str, dict[Cause, int]]"
) -> None:
    """A table of counts; its columns are the causes that are named in any row."""
    named = [cause for cause in Cause if any(cause in row for row in counts.values())]
    columns = titled(title, *named, right=named)
    rows = [[str(name), *(f"{row.get(cause, 0):,}" for cause in named)] for name, row in counts.items()]
    print_rows(screen, columns, rows)


def _print_question(screen: Console, each: WrongAnswer) -> None:
    screen.print(heading(f"{each.number}  {each.question_id}  {each.cause}"))
    screen.print(f"   {each.facts}", soft_wrap=True)
    for sign in each.signs[1:]:
        screen.print(f"   also {sign.cause}: {sign.facts}", style="dim", soft_wrap=True)
    for label in each.labels:
        note = f": {label.note}" if label.note else ""
        screen.print(f"   {label.annotator} says {label.cause}{note}", soft_wrap=True)


# Files of sentences to be judged, and of causes to be labelled, which people fill in.

RowT = TypeVar("RowT", bound=Struct)
T = TypeVar("T")
M = TypeVar("M")


def write_rows(path: Path, rows: Sequence[Struct]) -> None:
    """Writes an annotation file; InputError where it can't be written or is there already, as it may hold marks."""
    try:
        # Exclusive creation, as a file that is there may hold hours of a person's work.
        with path.open("xb") as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
    except FileExistsError as error:
        raise InputError(f"{path} is there already and may hold marks; import it, or name another file") from error
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); name another file") from error


def read_rows(path: Path, form: type[RowT]) -> dict[str, RowT]:
    """The rows of an annotation file by their place in it; InputError says where one has another form."""
    rows: dict[str, RowT] = {}
    with opened(path, InputError) as file:
        for number, line in numbered_lines(file, str(path), InputError, MAX_FILE_BYTES):
            if line.strip():
                rows[f"{path}:{number}"] = _row(line, f"{path}:{number}", form)
    return rows


def _row(raw: bytes, place: str, form: type[RowT]) -> RowT:
    try:
        return msgspec.json.decode(raw, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{place}: {problem_of(error, raw, form)}; each line is an object as the exported file has it"
        ) from error


CAUSES = {str(number): cause for number, cause in enumerate(Cause, start=1)}
"""The causes by the keys that choose them."""

KEYS = (
    "y as the rules say · " + " · ".join(f"{key} {cause}" for key, cause in CAUSES.items()),
    "s skip · u undo · q quit; after y or a number a note, if you like",
)

RULE = 100
"""The most columns of the line between two answers."""


def label_causes(
    run: str, annotator: str, size: int, seed: int, export: Path | None, filled: Path | None, *, json: bool
) -> None:
    """Asks for labels, writes a file to label, or reads one."""
    run_id = labels.identify(run).run
    if filled:
        rows = read_rows(filled, CauseRow)
        summary = cause_labels.fill_in(run_id, annotator=annotator, rows=rows, follow=followed)
    else:
        cases = cause_labels.cases(run_id, size=size, seed=seed, follow=followed)
        if export:
            _export(run_id, annotator, export, cases, json=json)
            return
        summary = _ask(run_id, annotator, cases)
    if in_json(summary, json=json):
        return
    console().print(
        f"{summary.run}: {summary.annotator} has labelled {summary.labelled:,} of "
        f"{count(summary.answers, 'wrong answer')}. `cotrail errors {summary.run}` shows the labels next to the rules.",
        soft_wrap=True,
    )


def _ask(run: str, annotator: str, cases: tuple[Case, ...]) -> LabellingSummary:
    labelled = {label.question_id for label in cause_labels.list_labels(run, annotator)}

    unlabelled = [case for case in cases if case.wrong.question_id not in labelled]

    def forget(case: Case) -> None:
        cause_labels.forget(run, question=case.wrong.question_id, annotator=annotator)

    def made(case: Case, key: str, note: str) -> CauseLabel:
        cause = CAUSES.get(key, case.wrong.cause)
        return CauseLabel(question_id=case.wrong.question_id, annotator=annotator, cause=cause, note=note)

    screen = console()
    session: Marking[Case, CauseLabel] = Marking(unlabelled, lambda label: cause_labels.label(run, [label]), forget)
    mark_each(screen, session, "cause?", ("y", *CAUSES), KEYS, lambda case: _show(screen, case, session.left), made)
    return cause_labels.summary(run, annotator=annotator, questions=[case.wrong.question_id for case in cases])


def mark_each(
    screen: Console,
    session: Marking[T, M],
    asked: str,
    choices: Collection[str],
    keys: Sequence[str],
    show: Callable[[T], None],
    made: Callable[[T, str, str], M],
) -> None:
    """Have a person mark one thing after the other, until they quit.

    asked: the words before the cursor; choices: the keys that mark it; keys: lines on what all keys do.
    made: the mark of a thing, from the key and the note after it.
    """
    while (thing := session.next) is not None:
        show(thing)
        key, note = _ask_key(screen, asked, choices, keys)
        match key:
            case "q":
                return
            case "u":
                session.undo()
            case "s":
                session.skip()
            case _:
                session.mark(made(thing, key, note))


def _ask_key(screen: Console, asked: str, choices: Collection[str], keys: Sequence[str]) -> tuple[str, str]:
    """The key that the person types, and the note after it; asks again where it is none."""
    while True:
        typed, _, note = typer.prompt(asked, prompt_suffix=" ").strip().partition(" ")
        key = typed.lower()
        # Arrow keys arrive as escape sequences, which would become part of the note.
        if (key in choices and note.isprintable()) or (key in ("s", "u", "q") and not note):
            return key, note.strip()
        print_keys(screen, keys)


def print_keys(screen: Console, keys: Sequence[str]) -> None:
    """Prints what the keys do."""
    for line in keys:
        screen.print(line, style="dim")


def _show(screen: Console, case: Case, left: int) -> None:
    """Prints a wrong answer below its gold paragraphs, its question and its chain."""
    wrong = case.wrong
    screen.print(Rule(style="dim"), width=min(screen.width, RULE))
    for gold in case.gold:
        screen.print(Text(one_line(gold.name), style="bold").append(f"  {one_line(gold.text)}", style="not bold dim"))
        screen.print(_indented(Text(gold.fate)))
    screen.print()
    screen.print(heading(wrong.question))
    for sentence in case.sentences:
        screen.print(_indented(Text(sentence, style="dim")))
    given = "no answer" if wrong.answer is None else wrong.answer or "(empty)"
    screen.print(_indented(Text(given, style="bold yellow").append(f"  published: {' / '.join(wrong.answers)}", "dim")))
    screen.print(Text(wrong.cause, style="bold").append(f": {wrong.facts}", style="not bold"))
    for sign in wrong.signs[1:]:
        screen.print(Text(f"also {sign.cause}: {sign.facts}", style="dim"))
    screen.print(f"question {wrong.question_id}; {count(left, 'answer')} to go", style="dim")
    print_keys(screen, KEYS)


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 3), expand=False)


def _export(run: str, annotator: str, path: Path, cases: tuple[Case, ...], *, json: bool) -> None:
    rows = rows_of(run, cases, cause_labels.list_labels(run, annotator))
    write_rows(path, rows)
    if in_json({"run": run, "annotator": annotator, "export": str(path), "answers": len(rows)}, json=json):
        return
    console().print(
        f"{count(len(rows), 'wrong answer')} in {path}. Fill in `cause`, one of {', '.join(Cause)}; then: "
        f"cotrail annotate {run} --causes --import {path}",
        soft_wrap=True,
    )
