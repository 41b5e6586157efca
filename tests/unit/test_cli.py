"""The command line without a server: help, exit codes, errors in one line, and text for people."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from rich.cells import cell_len
from typer.testing import CliRunner

from cotrail import __version__
from cotrail.cli import lazy_group
from cotrail.cli.lazy_group import load
from cotrail.cli.main import app, exit_code
from cotrail.common.humanize import duration, rate, size, within_sentence
from cotrail.common.printable_text import cut
from cotrail.errors import DOCS, BlockedError, CorpusError, CotrailError, UnavailableError, UnknownNameError
from cotrail.services.runs.requests import make_request, read_run_file
from cotrail.services.runs.submission import prepare
from tests.cases import each_case
from tests.conftest import wait_until
from tests.unit.commands import ROOT, Given, Run

COMMANDS = [entry.name for entry in lazy_group.COMMANDS]


def options(given: dict[str, Any]) -> list[str]:
    return [part for key, value in given.items() for part in (f"--{key.replace('_', '-')}", str(value))]


@each_case(("title", "within"), [("Answer F1", "answer F1"), ("ROUGE-L", "ROUGE-L"), ("NDCG@10", "NDCG@10"), ("", "")])
def test_a_title_within_a_sentence_begins_small_unless_it_is_an_abbreviation(title: str, within: str) -> None:
    assert within_sentence(title) == within


def test_the_help_lists_every_command_and_the_exit_codes(cotrail: Run) -> None:
    shown = cotrail("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert all(re.search(rf"\b{command}\b", shown.stdout) for command in COMMANDS)
    assert "Exit codes" in shown.stdout


@each_case("command", COMMANDS)
def test_every_command_has_help(command: str, home: Path) -> None:
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert "Usage: " in shown.stdout


def paths(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The words of a command, and of those below it."""
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from paths(below, (*path, name))


@cache
def all_paths() -> tuple[tuple[str, ...], ...]:
    return ((), *(path for entry in lazy_group.COMMANDS for path in paths(load(entry), (entry.name,))))


@cache
def groups() -> list[tuple[str, ...]]:
    return [path for path in all_paths() if any(other[:-1] == path for other in all_paths() if other)]


@cache
def help_of(path: tuple[str, ...]) -> str:
    return CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"}).stdout


FOR_PEOPLE = {
    ("demo",),
    ("start",),
    ("worker",),
    ("logs",),
    ("flower",),
    ("serve",),
    ("serve-corpus",),
    ("new",),
    ("mcp",),
    ("view",),
}
"""The commands whose output is of no use to a program."""


@each_case("path", all_paths, ids=" ".join)
def test_no_help_shows_a_type_of_python(path: tuple[str, ...], home: Path) -> None:
    assert not re.search(r"<(bool|str|int|float|path|list)|range>|\[\[|\.{3}\}", help_of(path))


@each_case("path", lambda: [path for path in all_paths() if path not in groups()], ids=" ".join)
def test_what_a_command_prints_is_there_as_json(path: tuple[str, ...], home: Path) -> None:
    assert ("--json" in help_of(path)) != (path in FOR_PEOPLE)


@each_case("path", groups, ids=" ".join)
def test_a_group_without_a_command_shows_its_help_and_no_empty_message(
    path: tuple[str, ...], cotrail_here: Run
) -> None:
    ended = cotrail_here(*path)
    assert (ended.returncode, ended.stderr) == (2, "")
    assert "Usage: " in ended.stdout


def test_the_version_is_told() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.stdout) == (0, f"cotrail {__version__}\n")


@each_case(
    ("arguments", "code", "said"),
    [
        (["frobnicate"], 2, "there is no command 'frobnicate'; see `cotrail --help`"),
        (["runs", "--frobnicate"], 2, "see `cotrail runs --help`"),
        (["submit", "--limit", "many"], 2, "see `cotrail submit --help`"),
        (["index", "missing.jsonl", "--name", "c"], 2, "missing.jsonl can't be read"),
        (["index", "missing.jsonl", "--name", "../c"], 2, "a corpus can't be named"),
        (["submit"], 2, "no system given; name it with --system"),
        (["submit", "--system", "ircott"], 2, "did you mean ircot?"),
        (["submit", "--dataset", "hotpot"], 2, "did you mean hotpotqa?"),
        (["runs", "--filter", "sate=finished"], 2, "did you mean state?"),
        (["submit", "missing.toml"], 2, "missing.toml can't be read"),
        (["submit", "questions.jsonl"], 2, "a file of questions goes behind --questions"),
        (["runs"], 3, "cotrail up"),
        (["show", "latest"], 3, "cotrail up"),
        (["watch", "latest"], 3, "cotrail up"),
        (["pause", "latest"], 3, "cotrail up"),
        (["export", "latest", "--format", "arrow"], 2, "see `cotrail export --help`"),
    ],
)
def test_an_error_is_one_line_above_its_page(arguments: list[str], code: int, said: str, cotrail_here: Run) -> None:
    ended = cotrail_here(*arguments)
    assert ended.returncode == code
    assert ended.stdout == ""
    line, *page = ended.stderr.splitlines()
    assert line.startswith("cotrail: ")
    assert said in line
    # Of what was typed wrongly, the command's own help says more.
    assert page == [] if "--help`" in said else page[0].startswith(f"See {DOCS}")


def test_a_database_by_url_that_does_not_answer_is_named_as_such(cotrail: Run) -> None:
    ended = cotrail("runs", COTRAIL_DATABASE_URL="postgresql://nobody@127.0.0.1:1/cotrail")
    assert ended.returncode == 3
    assert "COTRAIL_DATABASE_URL" in ended.stderr


def test_an_unusable_environment_variable_is_named(cotrail: Run) -> None:
    ended = cotrail("runs", COTRAIL_LEASE_SECONDS="soon")
    assert ended.returncode == 2
    line, _ = ended.stderr.splitlines()
    assert "COTRAIL_LEASE_SECONDS" in line


def test_as_json_an_error_has_its_form_alone(cotrail_here: Run) -> None:
    ended = cotrail_here("submit", "missing.toml", "--json")
    [line] = ended.stderr.splitlines()
    assert json.loads(line).keys() == {"error", "exit_code"}


def _kinds(kind: type[CotrailError]) -> Iterator[type[CotrailError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)


def test_every_error_leads_to_a_page_and_a_heading_that_there_are() -> None:
    kinds = {each.__name__: each for each in _kinds(CotrailError) if each.__module__ == "cotrail.errors"}
    assert tomllib.loads((ROOT / "cotrail" / "errors.toml").read_text()).keys() <= kinds.keys()
    for kind in kinds.values():
        page, _, anchor = kind.__new__(kind).page.removeprefix(DOCS).partition("#")
        headings = re.findall("(?m)^#+ (.+)$", (ROOT / "docs" / page).read_text())
        assert anchor in {"", *(re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings)}, kind


def _is_over_once_interrupted(process: "subprocess.Popen[bytes]") -> bool:
    """A signal that comes just before a read blocks isn't seen until the read returns: one presses Ctrl-C again."""
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(2)
    return process.returncode is not None


def test_an_interruption_exits_with_130(home: Path, given: Given) -> None:
    fifo = home / "pipe.jsonl"
    os.mkfifo(fifo)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COTRAIL_HOME": str(home)}
    command = [sys.executable, "-m", "cotrail.cli.main", "index", str(fifo), "--name", "endless"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        with fifo.open("w"):  # opens only once the command reads it
            wait_until(lambda: _is_over_once_interrupted(process), "the command is over", 30)
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 130
    assert not (home / "corpora" / "endless").exists()


def test_a_reader_that_has_seen_enough_causes_no_complaint(home: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COTRAIL_HOME": str(home)}
    command = [sys.executable, "-m", "cotrail.cli.main", "submit", "--help"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@each_case(
    ("error", "code"),
    [(CorpusError("x"), 2), (UnknownNameError("x"), 2), (UnavailableError("x"), 3), (BlockedError("x"), 1)],
)
def test_each_kind_of_error_has_its_exit_code(error: CotrailError, code: int) -> None:
    assert exit_code(error) == code


@each_case(
    ("words", "completed"),
    [
        ("logs mainten", "maintenance"),
        ("submit --system searcha", "searchain"),
        ("submit --dataset musi", "musique"),
        ("systems rethin", "rethinking"),
        ("datasets hot", "hotpotqa"),
    ],
)
def test_the_shell_completes_names(words: str, completed: str, cotrail_here: Run) -> None:
    assert cotrail_here(**completing(words)).stdout.split() == [completed]


def completing(words: str) -> dict[str, str]:
    """The variables by which a shell asks what `cotrail` and these words may go on with."""
    line = f"cotrail {words}"
    return {"_COTRAIL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}


def test_a_shell_asks_a_process(cotrail: Run) -> None:
    ended = cotrail(**completing("submit --system searcha"))
    assert (ended.returncode, ended.stdout.split()) == (0, ["searchain"])


def test_the_sample_can_be_started_from(home: Path, cotrail: Run, cotrail_here: Run) -> None:
    written = json.loads(cotrail("sample", home / "mine", "--json").stdout)["files"]
    assert [Path(file).name for file in written] == [
        "corpus.jsonl",
        "questions.jsonl",
        "demonstrations.txt",
        "short_demonstrations.txt",
        "run.toml",
    ]
    assert cotrail_here("index", written[0], "--name", "sample").returncode == 0
    request = make_request(read_run_file(Path(written[-1])))
    assert len(prepare(replace(request, model="scripted")).questions) == 32
    refused = cotrail_here("sample", home / "mine")
    assert (refused.returncode, "would be replaced; name another folder" in refused.stderr) == (2, True)


def test_index_prints_what_it_made(home: Path, given: Given, cotrail_here: Run) -> None:
    printed = json.loads(cotrail_here("index", home / "corpus.jsonl", "--name", "again", "--json").stdout)
    assert (printed["corpus"], printed["paragraphs"]) == ("again", 1)
    assert len(printed["revision"]) == 64
    assert "1 paragraph " in cotrail_here("index", home / "corpus.jsonl", "--name", "again").stdout


@each_case(
    "line",
    ["not JSON", '{"id": "2", "title": "T"}', '{"id": "2", "title": "T", "text": "a\\u0000b"}', '{"id": "\\ud800"}'],
)
def test_a_corpus_line_that_can_not_be_used_is_named_and_leaves_nothing_behind(
    line: str, home: Path, cotrail_here: Run
) -> None:
    path = home / "bad.jsonl"
    path.write_text(f'{{"id": "1", "title": "Ink", "text": "Stains."}}\n{line}\n')
    ended = cotrail_here("index", path, "--name", "bad")
    assert ended.returncode == 2
    assert "bad.jsonl, line 2" in ended.stderr
    assert not (home / "corpora" / "bad").exists()


@each_case(
    ("questions", "said"),
    [
        ("", "no questions"),
        ('{"id": "1", "question": "A?"}\n{"id": "1", "question": "B?"}', "has the id '1' too"),
        ('{"id": "1", "question": " "}', "the question is empty"),
        ('{"id": "1", "question": "A\\u0000?"}', "NUL"),
        ('{"id": "1", "question": "A\\ud800?"}', "line 1"),
        ('{"id": "1", "question": "A?", "gold": ["9"]}', 'no paragraph "9"'),
    ],
)
def test_a_question_file_that_can_not_work_is_refused(
    questions: str, said: str, given: Given, cotrail_here: Run
) -> None:
    asked = given()
    Path(asked["questions"]).write_text(questions)
    ended = cotrail_here("submit", *options(asked))
    assert ended.returncode == 2
    assert said in ended.stderr


def test_all_is_checked_before_a_server_is_asked(given: Given, cotrail_here: Run) -> None:
    assert cotrail_here("submit", *options(given())).returncode == 3
    assert cotrail_here("submit", *options(given(model="unknown"))).returncode == 2


@each_case(
    ("seconds", "shown"),
    [
        (0.0123, "12 ms"),
        (1.24, "1.2 s"),
        (42.4, "42 s"),
        (0.0003, "0.3 ms"),
        (0, "0 ms"),
        (0.9996, "1.0 s"),
        (9.97, "10 s"),
        (59.7, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_durations_read_as_people_say_them(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@each_case(
    ("bytes_", "shown"),
    [(0, "0 bytes"), (1, "1 byte"), (1023, "1,023 bytes"), (1024, "1 KiB"), (40_000, "39 KiB"), (3 * 2**20, "3.0 MiB")],
)
def test_sizes_have_a_unit_that_leaves_digits(bytes_: int, shown: str) -> None:
    assert size(bytes_) == shown


@each_case(("value", "shown"), [(0, "0.0"), (0.0244, "0.024"), (0.999, "1"), (3.14, "3.1"), (1204, "1,204")])
def test_slow_rates_keep_two_digits(value: float, shown: str) -> None:
    assert rate(value) == shown


def test_a_text_is_cut_between_words_and_stays_one_line() -> None:
    assert cut("one\n two", 10) == "one two"
    assert cut("one two three", 9) == "one two…"
    assert cut("漢字" * 20, 10) == "漢字" * 4 + "漢…"


def test_wide_characters_and_long_words_wrap_within_the_width() -> None:
    from cotrail.cli.terminal.output import console, grid

    table = grid("", "")
    table.add_row("★", "漢字" * 100 + " [bold]x[/bold] " + "w" * 300)
    screen = console()
    with screen.capture() as captured:
        screen.print(table)
    assert "[bold]" in captured.get().replace("\n", "").replace(" ", "")
    assert max(map(cell_len, captured.get().splitlines())) <= screen.width
