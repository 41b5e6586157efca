"""Votes among answers."""

from hypothesis import given
from hypothesis import strategies as st

from cotrail.systems.parts.majority import CountedAnswer, Votes, majority


def test_answers_are_the_same_where_normalization_makes_them_so() -> None:
    votes = majority(["Ada", "the Vell.", "vell", " "])
    assert votes.counted == (CountedAnswer(answer="the Vell.", votes=2), CountedAnswer(answer="Ada", votes=1))
    assert (votes.winner, votes.chosen, votes.answers) == ("the Vell.", 1, ("Ada", "the Vell.", "vell", ""))


def test_of_equal_votes_the_first_answer_wins_or_the_shorter_one() -> None:
    assert majority(["longer", "short"]).winner == "longer"
    assert majority(["longer", "short"], tie="shorter").winner == "short"
    assert majority(["b", "c"], tie="shorter").winner == "b"


def test_answers_that_normalization_empties_are_answers() -> None:
    assert majority(["B", "A", "a"]).winner == "A"


def test_there_is_no_winner_without_answers() -> None:
    assert majority(["", " "]) == Votes(answers=("", ""))
    assert majority([]).winner == ""


@given(st.lists(st.text()))
def test_the_winner_is_one_of_the_answers_and_no_other_has_more_votes(answers: list[str]) -> None:
    votes = majority(answers)
    assert sum(each.votes for each in votes.counted) == sum(bool(each.strip()) for each in answers)
    assert all(each.votes <= votes.counted[0].votes for each in votes.counted)
    assert (votes.winner in votes.answers) or not votes.counted
