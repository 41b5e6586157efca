"""Variant I of Rethinking with Retrieval: fact selection (section 5.3 and appendix A.4)."""

from collections.abc import Iterable, Mapping, Sequence

from cotrail.core.actions.embed import Embed
from cotrail.core.results import Embedded
from cotrail.core.system import Part
from cotrail.faithfulness.scores import Evidence, fact_score
from cotrail.faithfulness.weighing import ChosenFact
from cotrail.systems.parts.steps import all_of
from cotrail.systems.rethinking.settings import RethinkingSettings


def select_facts(
    best: Iterable[str], evidence: Mapping[str, Evidence], settings: RethinkingSettings
) -> Part[tuple[ChosenFact, ...]]:
    """For each fact of the best chain the most faithful fact of its topic; of equals itself, then the earliest.

    evidence: of every fact of every chain.
    """
    topic = yield from _topics(tuple(evidence), settings.topic_similarity)

    def score(fact: str) -> float:
        return fact_score(evidence[fact].scores, settings.faithfulness_function, settings.thresholds)

    # max takes the first of equals, and the fact itself comes first.
    def most_faithful(fact: str) -> str:
        return max(fact, *(other for other in evidence if topic[other] == topic[fact]), key=score)

    return tuple(_chosen(most_faithful(fact), fact, evidence) for fact in best)


def _topics(facts: tuple[str, ...], threshold: float) -> Part[dict[str, int]]:
    """Each fact's topic, by the facts' similarity to one another."""
    results = yield from all_of((Embed(sentences=facts),) if facts else (), Embedded)
    return {
        fact: topic
        for embedded in results
        for fact, topic in zip(facts, topics(embedded.similarities, threshold), strict=True)
    }


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


def _chosen(text: str, replaces: str, evidence: Mapping[str, Evidence]) -> ChosenFact:
    scores = evidence[text].scores
    return ChosenFact(
        text=text,
        replaces=replaces,
        origin="kept" if text == replaces else "selected",
        evidence=evidence[text].digest,
        entailment=scores.entailment,
        contradiction=scores.contradiction,
    )
