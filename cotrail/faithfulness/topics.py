"""Greedy clustering of sentences by topic, for fact selection (Rethinking with Retrieval, appendix A.4, variant I)."""

from collections.abc import Sequence


def topics(similarities: Sequence[Sequence[float]], threshold: float) -> tuple[int, ...]:
    """Each sentence's topic, numbered from 0 in the order in which they are founded.

    The paper calls its clustering greedy and doesn't define it. Here a sentence joins the first topic whose first
    sentence is at least `threshold` similar to it, and founds a new topic if there is none.

    similarities: n rows of n cosine similarities, of each sentence to every sentence.
    """
    founders: list[int] = []
    numbers: list[int] = []
    for number, row in enumerate(similarities):
        joined = next((topic for topic, founder in enumerate(founders) if row[founder] >= threshold), len(founders))
        if joined == len(founders):
            founders.append(number)
        numbers.append(joined)
    return tuple(numbers)
