"""The gold paragraphs of a question: which were found, at which search, and which weren't."""

from collections.abc import Iterator, Mapping
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.paragraphs import Hit
from cotrail.core.questions import GoldParagraph
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics.supporting_paragraphs import (
    Fold,
    Key,
    counted,
    fold_of,
    gold_key,
    paragraph_keys,
)
from cotrail.models.queries.traces import TracedQuestion, TracedStep


class GoldSearch(Struct, frozen=True, kw_only=True):
    """The search that first found a paragraph: the step, its place among the question's searches from 1, and the rank.

    paragraph_id: what was found, in its corpus.
    """

    step: int
    search: int
    rank: int
    query: str
    paragraph_id: str


class FoundGold(Struct, frozen=True, kw_only=True):
    """A gold paragraph.

    id: in its corpus, where the dataset gives it or a search found the paragraph.
    collected: whether it counts as found in the paragraph recall; what a search found may have been left out since.
    found: by which search; None where none found it.
    same_title: where none did, the search that first found another paragraph of its title.
    """

    id: str | None
    title: str
    text: str
    collected: bool
    found: GoldSearch | None = None
    same_title: GoldSearch | None = None

    @property
    def name(self) -> str:
        """Its title, or the beginning of its text where it has none, or its id where it has neither."""
        return self.title or self.text or self.id or ""


def gold_paragraphs(question: TracedQuestion, dataset: str) -> tuple[FoundGold, ...]:
    """The gold paragraphs that count in the question's paragraph recall, in the dataset's order."""
    fold = fold_of(scoring_of(dataset))
    once = {gold_key(each, fold): each for each in reversed(counted(question.gold, question.pinned))}
    if not once:
        return ()
    collected = set(chain.from_iterable(paragraph_keys(each, fold) for each in question.paragraphs))
    places = _first_found(question, fold)
    return tuple(_found(gold, key, places, fold, collected=key in collected) for key, gold in reversed(once.items()))


def where(gold: FoundGold) -> str:
    """In words: where it was found, or what was found in its place."""
    if gold.found:
        aside = "" if gold.collected else ", then left out"
        return f"found by {_search(gold.found)}{aside}"
    if gold.same_title:
        return f"not found; another paragraph of its title by {_search(gold.same_title)}"
    return "not found"


def _search(search: GoldSearch) -> str:
    return f"search {search.search} (step {search.step}), rank {search.rank}"


def _searches(question: TracedQuestion) -> Iterator[tuple[int, TracedStep]]:
    """The steps that find paragraphs, numbered from 1."""
    return enumerate((step for step in question.steps if step.query is not None), start=1)


def _first_found(question: TracedQuestion, fold: Fold) -> dict[Key, GoldSearch]:
    """Where what counts as gold of each key was first found."""
    places: dict[Key, GoldSearch] = {}
    for number, step in _searches(question):
        for hit in step.hits:
            for key in paragraph_keys(hit.paragraph, fold):
                if key not in places:
                    places[key] = _at(number, step, hit)
    return places


def _found(
    gold: GoldParagraph, key: Key, places: Mapping[Key, GoldSearch], fold: Fold, *, collected: bool
) -> FoundGold:
    place = places.get(key)
    same_title = places.get(gold_key(replace(gold, by="title"), fold)) if gold.title and not place else None
    return FoundGold(
        id=gold.id or (place.paragraph_id if place else None),
        title=gold.title,
        text=gold.text,
        collected=collected,
        found=place,
        same_title=same_title,
    )


def _at(number: int, step: TracedStep, hit: Hit) -> GoldSearch:
    return GoldSearch(
        step=step.sequence, search=number, rank=hit.rank, query=step.query or "", paragraph_id=hit.paragraph.id
    )
