"""Sentences by topic: the greedy rule, and what follows from it."""

from hypothesis import given
from hypothesis import strategies as st

from cotrail.systems.rethinking.evidence import topics

Matrix = list[list[float]]


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    """Symmetric similarities with ones on the diagonal."""
    size = draw(st.integers(0, 8))
    similarity = st.sampled_from([-1.0, 0.0, 0.5, 0.7, 0.9, 1.0]) | st.floats(-1, 1)
    matrix = [[1.0] * size for _ in range(size)]
    for row in range(size):
        for column in range(row):
            matrix[row][column] = matrix[column][row] = draw(similarity)
    return matrix


def test_a_sentence_joins_the_first_founder_that_it_is_like_and_not_the_nearest() -> None:
    similarities = [
        [1.0, 0.2, 0.8, 0.3, 0.7],
        [0.2, 1.0, 0.9, 0.1, 0.9],
        [0.8, 0.9, 1.0, 0.9, 0.6],
        [0.3, 0.1, 0.9, 1.0, 0.0],
        [0.7, 0.9, 0.6, 0.0, 1.0],
    ]
    # The third is nearer to the second, and the fourth is like the third, which has founded nothing.
    assert topics(similarities, 0.7) == (0, 1, 0, 2, 0)
    assert topics(similarities, 0.75) == (0, 1, 0, 2, 1)


def test_no_sentences_have_no_topics() -> None:
    assert topics([], 0.5) == ()


@given(matrices(), st.sampled_from([-1.0, 0.0, 0.5, 0.7, 1.0]) | st.floats(-1, 1))
def test_topics_are_what_the_rule_says(similarities: Matrix, threshold: float) -> None:
    found = topics(similarities, threshold)
    founders = [found.index(topic) for topic in range(len(set(found)))]
    assert len(found) == len(similarities)
    assert founders == sorted(founders)
    for number, topic in enumerate(found):
        earlier = [founder for founder in founders[:topic] if founder < number]
        assert len(earlier) == topic
        assert all(similarities[number][founder] < threshold for founder in earlier)
        assert number == founders[topic] or similarities[number][founders[topic]] >= threshold


@given(matrices())
def test_the_lowest_threshold_makes_one_topic_and_one_beyond_reach_as_many_as_sentences(similarities: Matrix) -> None:
    assert set(topics(similarities, -1.0)) <= {0}
    assert topics(similarities, 1.1) == tuple(range(len(similarities)))


@given(matrices(), st.floats(-1, 1), st.integers(0, 8))
def test_later_sentences_do_not_change_the_topics_of_earlier_ones(
    similarities: Matrix, threshold: float, size: int
) -> None:
    beginning = [row[:size] for row in similarities[:size]]
    assert topics(beginning, threshold) == topics(similarities, threshold)[:size]
