"""Tables fit the terminal, and nothing in them is cut."""

import io

from hypothesis import given
from hypothesis import strategies as st

from cli.columns import Column, print_rows
from cli.output import Screen

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


@given(st.lists(st.tuples(CELLS, CELLS, CELLS).map(list), min_size=1, max_size=4), st.integers(14, 120))
def test_at_any_width_every_word_is_there_and_no_line_is_too_long(rows: list[list[str]], width: int) -> None:
    lines = printed(rows, width)
    assert all(len(line) <= width for line in lines)
    words = " ".join(lines).split()
    assert all(word in words for row in rows for cell in row for word in cell.split())
