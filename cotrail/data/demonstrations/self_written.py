"""Demonstrations that a model wrote itself, of questions unlike one another: Auto-CoT (Zhang et al., 2022).

Clusters of texts by k-means, as Auto-CoT makes them of questions (Zhang et al., 2022, section 4).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from cotrail.common.printable_text import storable
from cotrail.common.text_files import MAX_SMALL_FILE_BYTES, places, read_text
from cotrail.core.answer_extraction import STEP_BY_STEP
from cotrail.core.demonstrations import Demonstration, Demonstrations, whole_prompts
from cotrail.errors import DemonstrationError

if TYPE_CHECKING:
    from numpy import ndarray


STARTS = 10
"""How often centres are drawn; the clusters that lie closest around theirs are taken."""

MOST_ROUNDS = 300
"""Rounds from each start at most."""


def clusters(similarities: Sequence[Sequence[float]], number: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """The members of each cluster, the nearest to its centre first; empty clusters are left out.

    It is k-means of the texts' unit vectors, whose distances to the mean of any of them follow from the similarities.

    similarities: n rows of n cosine similarities. number: k, at most n. seed: of the first centres.
    """
    import numpy

    gram, draws = numpy.asarray(similarities, dtype=float), Random(seed)  # noqa: S311 - repeatable, not secret
    settled = [_settled(gram, _drawn_centres(gram, number, draws)) for _ in range(STARTS)]
    # min takes the first of equals.
    distances = min(settled, key=lambda each: float(each.min(axis=1).sum()))
    labels = distances.argmin(axis=1)
    return tuple(_members(distances, labels, number))


def _members(distances: "ndarray[Any, Any]", labels: "ndarray[Any, Any]", number: int) -> Iterator[tuple[int, ...]]:
    for cluster in range(number):
        members = [place for place, label in enumerate(labels) if label == cluster]
        if members:
            yield tuple(sorted(members, key=lambda place: (float(distances[place, cluster]), place)))


def _drawn_centres(gram: "ndarray[Any, Any]", number: int, draws: Random) -> "ndarray[Any, Any]":
    """The first centres, each a text, drawn by its squared distance to those before it (k-means++)."""
    import numpy

    centres = [draws.randrange(len(gram))]
    while len(centres) < number:
        nearest = _to_texts(gram, centres).min(axis=1).clip(min=0.0)
        nearest[centres] = 0.0
        steps = numpy.cumsum(nearest)
        # Where all texts lie on a centre, those that are none come in their order.
        left = [place for place in range(len(gram)) if place not in centres]
        place = int(numpy.searchsorted(steps, draws.random() * steps[-1], side="right"))
        centres.append(left[0] if steps[-1] <= 0 or place >= len(gram) else place)
    return _to_texts(gram, centres)


def _to_texts(gram: "ndarray[Any, Any]", centres: Sequence[int]) -> "ndarray[Any, Any]":
    """The squared distance of each text to each of these texts."""
    diagonal = gram.diagonal()
    distances: ndarray[Any, Any] = diagonal[:, None] - 2 * gram[:, centres] + diagonal[centres]
    return distances


def _settled(gram: "ndarray[Any, Any]", distances: "ndarray[Any, Any]") -> "ndarray[Any, Any]":
    """The squared distance of each text to each centre, once no text changes its cluster any more."""
    labels = distances.argmin(axis=1)
    for _ in range(MOST_ROUNDS):
        distances = _to_means(gram, labels, distances.shape[1])
        former, labels = labels, distances.argmin(axis=1)
        if (labels == former).all():
            break
    return distances


def _to_means(gram: "ndarray[Any, Any]", labels: "ndarray[Any, Any]", number: int) -> "ndarray[Any, Any]":
    """The squared distance of each text to the mean of each cluster; without end to an empty one."""
    import numpy

    is_in = labels[:, None] == numpy.arange(number)
    sizes = is_in.sum(axis=0)
    shares = is_in / sizes.clip(min=1)
    cross = gram @ shares
    distances = gram.diagonal()[:, None] - 2 * cross + (shares * cross).sum(axis=0)
    # Rounded, so that the order of sums on other machines makes no difference between equals.
    finite: ndarray[Any, Any] = numpy.where(sizes > 0, distances.round(9), numpy.inf)
    return finite


class SolvedQuestion(Struct, frozen=True, kw_only=True):
    """A question with the steps of the chain that a model wrote, and the answer that it named."""

    id: str
    question: str
    steps: tuple[str, ...]
    answer: str


class Simple(Struct, frozen=True, kw_only=True):
    """What makes a chain simple enough to be shown: the most words of its question, and the most of its steps."""

    question_words: int = 60
    steps: int = 5


def self_written(
    solved: Sequence[SolvedQuestion], similarities: Sequence[Sequence[float]], number: int, seed: int, simple: Simple
) -> Demonstrations:
    """A demonstration of each cluster of the questions: of those that are acceptable, the one nearest to the centre.

    A cluster without any gives none. A chain is acceptable if it is simple, ends in a full stop and has an answer.

    similarities: of each question to each; number: of clusters; seed: decides where these begin.
    Raises DemonstrationError where there are fewer questions than clusters, or nothing is acceptable.
    """
    if len(solved) < number:
        raise DemonstrationError(
            f"{number} clusters need as many answered questions, and there are {len(solved)}; take fewer clusters"
        )
    members = clusters(similarities, number, seed)
    chosen = (next((solved[place] for place in each if acceptable(solved[place], simple)), None) for each in members)
    items = tuple(_demonstration(each) for each in chosen if each is not None)
    if not items:
        raise DemonstrationError(
            f"no chain has at most {simple.steps} steps, a question of at most {simple.question_words} words, a full "
            "stop at its end and an answer; allow more of either, or have a run over more questions"
        )
    return Demonstrations(items=items)


def acceptable(solved: SolvedQuestion, simple: Simple) -> bool:
    """Return whether a chain may be shown (section 4.2 and the authors' code)."""
    is_simple = len(solved.question.split()) <= simple.question_words and 0 < len(solved.steps) <= simple.steps
    return is_simple and solved.steps[-1].endswith(".") and bool(_line(solved.answer))


def _demonstration(solved: SolvedQuestion) -> Demonstration:
    answer = _line(solved.answer).removesuffix(".")
    chain = _line(" ".join(solved.steps))
    return Demonstration(
        id=solved.id,
        paragraphs=(),
        question=_line(solved.question),
        answer=f"{STEP_BY_STEP} {chain} The answer is {answer}.",
    )


def _line(text: str) -> str:
    return " ".join(text.split())


# Words of prompts that a run brings in place of its system's own.


def read_prompts(path: Path, own: Mapping[str, str], authors: Mapping[str, str]) -> Demonstrations:
    """Read the prompts of a file or a folder; DemonstrationError says what is wrong with one of them.

    own: the system's own words by name, of which a text file replaces the first that asks the question; each place in
    these, such as `{question}`, stands once in what replaces them.
    authors: the names of prompts by their keys in the authors' file.
    """
    texts = {name: text.strip("\n") for name, text in _texts(path, _main(own), authors).items() if name in own}
    if not texts:
        raise DemonstrationError(f"{path} has no prompt of the system; it has {', '.join(own)}")
    for name, text in texts.items():
        _check(f"{path}: the prompt {name}" if len(own) > 1 else str(path), text, places(own[name]))
    return whole_prompts(texts)


def _main(own: Mapping[str, str]) -> str:
    return next((name for name, words in own.items() if "{question}" in words), next(iter(own)))


def _texts(path: Path, main: str, authors: Mapping[str, str]) -> dict[str, str]:
    if path.is_dir():
        return {file.stem: _text(file) for file in sorted(path.glob("*.txt"))}
    if path.suffix != ".json":
        return {main: _text(path)}
    keyed = {key: text for key, text in _object(path).items() if isinstance(text, str)}
    return {authors.get(key, key): text for key, text in keyed.items()}


def _object(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(_text(path), type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DemonstrationError(f"{path} isn't a JSON object of prompts by name: {error}") from error


def _text(path: Path) -> str:
    return read_text(path, DemonstrationError, MAX_SMALL_FILE_BYTES)


def _check(name: str, text: str, wanted: tuple[str, ...]) -> None:
    if not text.strip():
        raise DemonstrationError(f"{name} is empty; write the words of the prompt")
    if storable(text) != text:
        raise DemonstrationError(f"{name} holds characters that can't be stored")
    for place in wanted:
        if (times := text.count(place)) != 1:
            raise DemonstrationError(f"{name} has {times} times {place}; write it once, where that stands")
