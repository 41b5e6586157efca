"""What is printed of texts from elsewhere: it can be read, and commands no terminal."""

import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cotrail.cli.terminal.output import Screen, grid, heading
from cotrail.common.log_formatting import print_safely
from cotrail.common.printable_text import cut, indented, one_line, printable, printable_json
from cotrail.services.results.reports.pages import _shown
from tests.cases import each_case

HOSTILE = (
    "\x1b[2J\x1b[H", "\x1b]52;c;Zm9yZ2Vk\x07", "\x1b]0;title\x1b\\", "\x1b]8;;http://x\x1b\\", "\x1bP1$r\x1b\\",
    "\x1bc", "\x1b", "\x9b31m", "\x9d0;t\x9c", "\x90", "\x07", "\x08", "\x7f", "\x85", "\0", "\r", "\r\n", "\n", "\t",
    "\v", "\f", "\u2028", "\u2029", "\u202e", "\u202a", "\u202c", "\u2066", "\u2067", "\u2068", "\u2069",
    "\u200e", "\u200f", "\u061c", "\ud800", "\udfff", "אבג", "שלום 12", "مرحبا", "[2J",
    "\n[2] read  forged", "é", "💥", "a b", "%s", "\\", "[bold]", '"',
)  # fmt: skip

TEXTS = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), max_size=20).map("".join)

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066\u2067\u206a-\u206f]")
"""What no output has; a first-strong isolate and its end are what we put there ourselves."""


def is_safe(text: str) -> bool:
    """Whether nothing in the text is obeyed, and every isolate is ended before its line is."""
    isolates = (re.sub("[^\u2068\u2069]", "", line) for line in text.split("\n"))
    return not OBEYED.search(text) and all(re.fullmatch("(\u2068\u2069)*", marks) for marks in isolates)


@given(TEXTS)
def test_nothing_that_is_printable_is_obeyed(text: str) -> None:
    shown = printable(one_line(text))
    assert is_safe(shown)
    assert "\n" not in shown
    assert printable(shown) == shown
    shown.encode()


@given(
    st.text(st.characters(exclude_categories=["C"], max_codepoint=0x590) | st.sampled_from("\n\t漢字💥"), max_size=50)
)
def test_text_without_commands_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(TEXTS)
def test_text_from_right_to_left_stands_within_isolates_and_nothing_else_does(text: str) -> None:
    parts = re.split("\u2068([^\u2068\u2069]*)\u2069", printable(text))
    assert not any(re.search("[\u0590-\u08ff]", outside) for outside in parts[::2])
    assert not any(re.search("[a-zA-Z]", inside) for inside in parts[1::2])


@each_case(
    ("text", "shown"),
    [
        ("before\x1b[2J\x1b[Hafter", "before\ufffdafter"),
        ("\x1b]52;c;Zm9yZ2Vk\x07", "\ufffd"),
        ("\x1b]52;c;never ended", "\ufffd52;c;never ended"),
        ("a\x9b31mb", "a\ufffdb"),
        ("one\r\ntwo\tthree", "one\ntwo\tthree"),
        ("photo\u202egpj.exe", "photogpj.exe"),
        ("אבג 12 steps", "\u2068אבג\u2069 12 steps"),
    ],
)
def test_whole_sequences_are_taken_out_and_leave_a_mark(text: str, shown: str) -> None:
    assert printable(text) == shown


@each_case("piece", ["\x1b]", "\x9d", "\x1b[0", "א ", "א1", " ", "\x90a", "\x1b["])
def test_long_hostile_texts_take_no_longer_than_others(piece: str) -> None:
    assert len(printable(piece * 200_000)) <= 1_000_000


@given(TEXTS.filter(lambda text: not re.search("[\ud800-\udfff]", text)))
def test_json_says_the_same_and_holds_nothing_that_is_obeyed(text: str) -> None:
    encoded = printable_json(msgspec.json.encode({text: [text]}))
    assert json.loads(encoded) == {text: [text]}
    assert not re.search("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]", encoded.decode())


def shown(renderable: object, width: int = 40, *, soft_wrap: bool = True) -> str:
    """What the screen writes for it."""
    file = io.StringIO()
    Screen(file=file, markup=False, emoji=False, highlight=False, width=width).print(renderable, soft_wrap=soft_wrap)
    return file.getvalue()


def row(text: str) -> Table:
    table = grid("", "")
    table.add_row(text, Text(text))
    return table


@pytest.mark.parametrize("drawn", [str, Text, heading, row, lambda text: Padding(Text(text, style="bold"), 1)])
@pytest.mark.parametrize("soft_wrap", [True, False])
@given(text=TEXTS)
def test_whatever_the_screen_prints_commands_nothing(
    drawn: Callable[[str], object], text: str, *, soft_wrap: bool
) -> None:
    assert is_safe(shown(drawn(text), soft_wrap=soft_wrap))


@given(TEXTS)
def test_a_string_and_a_heading_are_one_line_whatever_is_in_them(text: str) -> None:
    assert shown(f"title {text}").count("\n") == 1
    assert shown(heading(text)).count("\n") == 1
    assert "\n" not in cut(text, 30)


def test_a_text_keeps_its_styles_where_something_is_taken_out() -> None:
    file = io.StringIO()
    screen = Screen(file=file, force_terminal=True, color_system="standard", width=40)
    screen.print(Text("a\x1b[2Jb", style="bold").append("\x9d0;t\x9cc", style="red"))
    assert re.sub("\x1b\\[[0-9;]*m", "", file.getvalue()) == "a\ufffdb\ufffdc\n"
    assert "\x1b[1m" in file.getvalue()
    assert "\x1b[1;31m" in file.getvalue()


@given(TEXTS)
def test_a_page_holds_nothing_that_a_browser_would_obey(text: str) -> None:
    assert is_safe(_shown(text))


@given(TEXTS)
def test_a_log_record_is_one_record_whatever_it_quotes(text: str) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("[%(levelname)s] %(message)s"))
    print_safely(handler)
    print_safely(handler)
    logger = logging.Logger("hostile")
    logger.addHandler(handler)
    try:
        raise ValueError(text)
    except ValueError as error:
        logger.exception("step failed: %s", error)
    said = written.getvalue()
    assert is_safe(said)
    assert all(line.startswith("  ") for line in said.splitlines()[1:])


def test_an_indented_text_begins_nothing_but_its_first_line() -> None:
    assert indented("failed\n[2] read") == "failed\n  [2] read"


def test_a_workers_log_is_printable_whatever_its_records_quote(tmp_path: Path) -> None:
    program = """
import logging
import os
from cotrail.workers.app import app
app.log.setup(loglevel="INFO")
logging.getLogger("cotrail.tasks.step").warning("step 1 failed: %s", "\\x1b[2J\\n[2026-01-01: INFO] forged")
app.log.get_default_logger("celery.task").warning("\\x9b31m\\n[forged")
"""
    environment = {**os.environ, "COTRAIL_HOME": str(tmp_path)}
    written = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stderr
    assert "step 1 failed: \ufffd\n  [2026-01-01: INFO] forged\n" in written
    assert written.endswith("\ufffd\n  [forged\n")
    assert is_safe(written)
