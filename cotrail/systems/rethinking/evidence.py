"""Evidence for facts: looked up, and compared with them (Rethinking with Retrieval, sections 4.2 to 4.4)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cotrail.core.actions.embed import Embed
from cotrail.core.actions.entail import Entail
from cotrail.core.actions.retrieve import Lookup, Retrieve
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.results import Embedded, Entailed, Retrieved
from cotrail.core.system import Part
from cotrail.faithfulness.weighing import ChosenFact, Evidence, Scores, fact_score
from cotrail.systems.parts.prompting import brought
from cotrail.systems.parts.steps import all_of
from cotrail.systems.rethinking.settings import RethinkingSettings

TRUE_OR_FALSE = "True or False?"
"""The words after a hypothesis that is put as a question (table 8); they are no part of it."""

Found = dict[str, tuple[Paragraph, ...]]
"""The paragraphs found for each fact, the best first."""


def find_evidence(question: Question, facts: Iterable[str], settings: RethinkingSettings) -> Part[dict[str, Evidence]]:
    """The evidence for each fact, in the order of the facts; a fact that several chains state is looked up once."""
    paragraphs = yield from look_up(question, tuple(dict.fromkeys(facts)), settings)
    nearest = yield from most_similar(paragraphs)
    return (yield from judged(paragraphs, nearest))


def look_up(question: Question, facts: tuple[str, ...], settings: RethinkingSettings) -> Part[Found]:
    """Search for all facts at once; a search that several of them share is made once."""
    # A dict keeps one of equal searches and the order of the first, which a replay must repeat exactly.
    sources = {fact: tuple(places(question, fact, settings)) for fact in facts}
    actions = tuple(
        dict.fromkeys(
            each for places_of_fact in sources.values() for each in places_of_fact if not isinstance(each, Paragraph)
        )
    )
    results = yield from all_of(actions, Retrieved)
    results_by_action = dict(zip(actions, results, strict=True))
    return {
        fact: tuple(
            paragraph
            for each in places_of_fact
            for paragraph in ((each,) if isinstance(each, Paragraph) else results_by_action[each].paragraphs)
        )
        for fact, places_of_fact in sources.items()
    }


def places(question: Question, fact: str, settings: RethinkingSettings) -> Iterator[Retrieve | Lookup | Paragraph]:
    """The places that may hold evidence for a fact, source by source: searches, and paragraphs of the question itself.

    Only some questions name evidence. A table, and words that connect it with the hypothesis, need a pinned passage.
    """
    query = fact if settings.query == "sentence" else question.text
    for source in settings.sources:
        match source:
            case "corpus":
                yield Retrieve(query=query, count=settings.retrieval_count)
            case "evidence" if settings.evidence == "paragraphs":
                yield from (brought(each) for each in question.evidence if isinstance(each, GoldParagraph))
            case "evidence" if question.evidence:
                titles = (each.title if isinstance(each, GoldParagraph) else each for each in question.evidence)
                yield Retrieve(query=query, count=settings.retrieval_count, titles=tuple(dict.fromkeys(titles)))
            case "wikidata":
                yield Lookup(source=source, text=query)
            case "table" if question.pinned:
                yield Lookup(source=source, text=question.pinned.text)
            case "wordnet" | "conceptnet" if question.pinned:
                hypothesis = question.text.removesuffix(TRUE_OR_FALSE).strip()
                yield Lookup(source=source, text=question.pinned.text, other=hypothesis)


def most_similar(paragraphs_by_fact: Found) -> Part[dict[str, tuple[Paragraph, float]]]:
    """For each fact with any paragraph the most similar one, the first of equals, and its similarity M(s)."""
    compared = {fact: paragraphs for fact, paragraphs in paragraphs_by_fact.items() if paragraphs}
    results = yield from all_of(
        (Embed(sentences=(fact,), paragraphs=each) for fact, each in compared.items()), Embedded
    )
    nearest = {}
    for (fact, paragraphs), embedded in zip(compared.items(), results, strict=True):
        (similarities,) = embedded.similarities
        # max takes the first of equals, which are in the order of the sources.
        best = max(range(len(paragraphs)), key=similarities.__getitem__)
        nearest[fact] = paragraphs[best], similarities[best]
    return nearest


def judged(facts: Iterable[str], nearest: Mapping[str, tuple[Paragraph, float]]) -> Part[dict[str, Evidence]]:
    """The scores of every fact, its nearest paragraph being the premise of E(s) and C(s)."""
    results = yield from all_of(
        (Entail(premise=paragraph, hypothesis=fact) for fact, (paragraph, _) in nearest.items()), Entailed
    )
    evidence = {
        fact: Evidence(
            paragraph=paragraph,
            scores=Scores(similarity=similarity, entailment=entailed.entailment, contradiction=entailed.contradiction),
        )
        for (fact, (paragraph, similarity)), entailed in zip(nearest.items(), results, strict=True)
    }
    return {fact: evidence.get(fact, Evidence()) for fact in facts}


# Variant I of Rethinking with Retrieval: fact selection (section 5.3 and appendix A.4).


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
