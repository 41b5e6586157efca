"""Tables fit the terminal, and nothing in them is cut."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.padding import Padding
from rich.text import Text

from cotrail.cli.terminal.output import Column, Screen, console, print_rows
from cotrail.cli.terminal.run_text import shown_state
from cotrail.models.schema.states import RunState

RUN = "self-consistency-20261123-abcdef"
COLUMNS = (Column(title="run", whole=True), Column(title="state"), Column(title="of questions", right=True))
WORDS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12)
CELLS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


def printed(rows: list[list[str]], width: int, *, terminal: bool = True) -> list[str]:
    file = io.StringIO()
    screen = Screen(file=file, width=width, force_terminal=terminal, color_system=None, markup=False)
    print_rows(screen, COLUMNS, rows)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_rows_that_fit_are_a_table_with_titles() -> None:
    assert printed([[RUN, "finished", "3"]], 80) == [
        "run                               state     of questions",
        f"{RUN}  finished             3",
    ]


def test_where_there_is_little_room_cells_wrap_between_words() -> None:
    lines = printed([[RUN, "finished (2 without answer)", "3"]], 54)
    assert lines[1].split() == ["run", "state", "questions"]
    assert lines[2].startswith(RUN)
    assert all(len(line) <= 54 for line in lines)


def test_where_there_is_no_room_each_row_is_a_paragraph() -> None:
    assert printed([[RUN, "finished", "3"]], 40) == [RUN, "  state finished · of questions 3"]


def test_another_program_gets_whole_lines() -> None:
    long = "finished " * 40
    [_, line] = printed([[RUN, long, "3"]], 60, terminal=False)
    assert long.strip() in line


def test_a_long_text_is_one_line_for_another_program_and_no_line_ends_with_spaces(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = "word " * 3000
    print_rows(console(), [Column(title="run"), Column(title="text", most=40)], [["r", long], ["s", "short"]])
    console().print(Padding(Text(long), (0, 0, 0, 3), expand=False))
    told = capsys.readouterr().out
    assert told.splitlines() == ["run  text", f"r    {long}".rstrip(), "s    short", f"   {long}".rstrip()]


@pytest.mark.parametrize(("variable", "coloured"), [("TERM", True), ("NO_COLOR", False)])
def test_states_have_colours_on_a_terminal_unless_there_should_be_none(
    monkeypatch: pytest.MonkeyPatch, variable: str, *, coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(variable, "xterm")
    file = io.StringIO()
    screen = Screen(file=file, width=80, force_terminal=True, color_system="standard", markup=False)
    print_rows(screen, [Column(title="state")], [[shown_state(state)] for state in RunState])
    assert ("\x1b[32m" in file.getvalue()) == coloured
    plain = io.StringIO()
    print_rows(Screen(file=plain, width=80), [Column(title="state")], [[shown_state(state)] for state in RunState])
    assert "\x1b" not in plain.getvalue()


@given(st.lists(st.tuples(CELLS, CELLS, CELLS).map(list), min_size=1, max_size=4), st.integers(14, 120))
def test_at_any_width_every_word_is_there_and_no_line_is_too_long(rows: list[list[str]], width: int) -> None:
    lines = printed(rows, width)
    assert all(len(line) <= width for line in lines)
    words = " ".join(lines).split()
    assert all(word in words for row in rows for cell in row for word in cell.split())
