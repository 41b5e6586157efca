"""Words in which texts differ: the longest common subsequence, as far as the work is bounded."""

from functools import cache
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cotrail.common.word_differences import MOST_EDITS, Pieces, shared_places, word_differences

items = st.text("abc", max_size=12)


def longest(first: str, second: str) -> int:
    """The length of the longest common subsequence, by its definition."""

    @cache
    def of(one: int, other: int) -> int:
        if not one or not other:
            return 0
        if first[one - 1] == second[other - 1]:
            return of(one - 1, other - 1) + 1
        return max(of(one - 1, other), of(one, other - 1))

    return of(len(first), len(second))


def marked(pieces: Pieces) -> list[str]:
    return [piece.text for piece in pieces if piece.alone]


@given(items, items)
def test_as_much_as_possible_is_shared_in_order(first: str, second: str) -> None:
    shared = shared_places(first, second)
    assert len(shared) == longest(first, second)
    assert all(first[one] == second[other] for one, other in shared)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(shared))


@given(st.text(), st.text())
def test_pieces_are_the_texts_again(first: str, second: str) -> None:
    ours, theirs = word_differences(first, second)
    assert "".join(piece.text for piece in ours) == first
    assert "".join(piece.text for piece in theirs) == second


def test_only_the_words_are_marked_that_the_other_text_does_not_have() -> None:
    ours, theirs = word_differences("Ada Brenn built it in 1900.", "Ada Brenn has built it, they say, in 1901.")
    assert marked(ours) == ["1900"]
    assert marked(theirs) == ["has", ", they say,", "1901"]


def test_space_alone_is_no_difference() -> None:
    assert not any(marked(pieces) for pieces in word_differences("one  two\nthree", "one two three"))


def test_texts_that_differ_in_too_much_share_their_beginning_and_their_end() -> None:
    ours, theirs = word_differences(f"begin {'a ' * 100_000}end", f"begin {'b a ' * (MOST_EDITS + 1)}end")
    assert [piece.alone for piece in ours] == [piece.alone for piece in theirs] == [False, True, False]
