"""Evidence for facts: looked up, and compared with them (Rethinking with Retrieval, sections 4.2 to 4.4)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.answer_normalization import normalized
from cotrail.common.toml_files import read_toml
from cotrail.core.actions.embed import Embed
from cotrail.core.actions.entail import Entail
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.retrieve import Lookup, Retrieve
from cotrail.core.demonstrations import AnswerForm, Demonstration, Demonstrations, Shots
from cotrail.core.questions import GoldParagraph, Paragraph, Question, passage_of
from cotrail.core.results import Embedded, Entailed, Retrieved
from cotrail.core.system import Part
from cotrail.faithfulness.weighing import ChosenFact, Evidence, Scores, Thresholds, fact_score
from cotrail.systems.parts.prompting import brought, few_shot_prompt
from cotrail.systems.parts.reading import ReaderSettings
from cotrail.systems.parts.steps import all_of, texts_of
from cotrail.systems.rethinking.settings import RethinkingSettings

# Variant II of Rethinking with Retrieval: fact generation (section 5.3 and appendix A.4).

UNKNOWN = "unknown"
"""The answer where a paragraph doesn't hold one."""


def entity_question(fact: str, entity: str) -> str:
    """The prompt for a question about a part of a sentence."""
    return f"Which question about this sentence has the answer '{entity}'? {fact}"


def _asking(fact: str, entity: str, question: str) -> Demonstration:
    return Demonstration(id=question, paragraphs=(), question=entity_question(fact, entity), answer=question)


def _reading(text: str, question: str, answer: str, title: str = "", id: str = "") -> Demonstration:  # noqa: A002
    paragraph = Paragraph(id=id, title=title, text=text) if id else passage_of(text)
    return Demonstration(id=question, paragraphs=(paragraph,), question=question, answer=answer)


_SHOWN = read_toml(Path(__file__).with_name("demonstrations.toml"))

ENTITY_QUESTIONS = Demonstrations(items=tuple(_asking(**each) for each in _SHOWN["entity_questions"]))
"""Demonstrations of questions about one part or another of a sentence."""

SPANS = Demonstrations(items=tuple(_reading(**each) for each in _SHOWN["spans"]))
"""Demonstrations of answers by the words of a paragraph."""


class Entity(Struct, frozen=True):
    """A part of a sentence; `start` is the place of its first character."""

    text: str
    start: int

    def replaced(self, sentence: str, text: str) -> str:
        """The sentence with another text in place of the entity, capitalised at the beginning of the sentence."""
        replacement = text[:1].upper() + text[1:] if self.start == 0 else text
        return sentence[: self.start] + replacement + sentence[self.start + len(self.text) :]


_SMALL = (
    "A|An|The|This|That|These|Those|It|Its|He|His|She|Her|They|Their|There|We|Our|You|Your|I|My|One|Some|Many|Most|"
    "All|Both|Each|Every|No|Not|In|On|At|By|For|From|Of|To|With|As|And|Or|But|If|So|Thus|When|While|Where|Who|What|"
    "Which|Why|How|After|Before|During|Since|Until|Is|Are|Was|Were|Has|Have|Had|Do|Does|Did|Can|Could|Will|Would|"
    "However|Therefore|Although|Because|Also|According|Only"
)
"""Words that begin no name, though a sentence may begin with them."""

_UPPER = "".join(letter for letter in map(chr, range(0x530)) if letter.isupper())
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\.?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?!\d)"
_YEAR = r"(?:,? \d{3,4}\b)"
_FIGURES = r"\d+(?:,\d{3})*(?:\.\d+)?"
_INITIALS = rf"(?:[{_UPPER}]\.){{1,20}}+(?=\s\w)"
_NAME = rf"(?:{_INITIALS}|[{_UPPER}][\w&-]*+(?:['\u2019](?=\w)(?!s\b)[\w&-]*+)*)"
_BETWEEN = r"(?:of the|of|de la|de|del|da|di|du|la|le|van der|van|von|bin|al|the)"

_ENTITY = re.compile(
    "|".join(
        (
            rf"\b{_MONTH} {_DAY}{_YEAR}?",
            rf"\b{_DAY} (?:of )?{_MONTH}{_YEAR}?",
            rf"\b{_MONTH}{_YEAR}",
            rf"\b{_FIGURES} ?(?:BCE|BC|CE|AD)\b|\bAD {_FIGURES}",
            rf"[$€£]?\b{_FIGURES}(?: (?:hundred|thousand|million|billion|trillion)\b|%|(?:st|nd|rd|th|s)\b)?",
            r"\"[^\"]+\"|“[^”]{1,300}”",
            rf"(?<![\w\u2019'-])(?!(?:{_SMALL})(?![\w-])){_NAME}(?: (?:{_BETWEEN} )?{_NAME})*",
        )
    )
)
"""Alternatives by precedence: of two that begin at one place the upper one matches."""

MOST_ENTITIES = 100
"""The most entities of a sentence: each becomes a question, which shows the whole sentence."""


def entities(sentence: str) -> tuple[Entity, ...]:
    """The first entities of the sentence in their order, each text once, at its first place."""
    first: dict[str, Entity] = {}
    for match in _ENTITY.finditer(sentence):
        first.setdefault(match[0], Entity(match[0], match.start()))
        if len(first) == MOST_ENTITIES:
            break
    return tuple(first.values())


class _Draft(Struct, frozen=True, kw_only=True):
    """A part of a fact that the fact's evidence may contradict, and a question about it."""

    fact: str
    entity: Entity
    paragraph: Paragraph
    question: str = ""


def generate_facts(
    facts: Sequence[ChosenFact], evidence: Mapping[str, Evidence], shots: Shots, settings: RethinkingSettings
) -> Part[tuple[ChosenFact, ...]]:
    """The facts; those that their evidence doesn't support are replaced by statements corrected by the evidence.

    A statement replaces a fact if the evidence supports it (E >= T_e and C < T_c) and entails it more than the fact. Of
    several the most entailed does, of equals the earliest.
    """
    # Each stage asks for all drafts at once, so that a question takes as many rounds of the model as there are stages.
    drafts = tuple(
        _Draft(fact=fact, entity=entity, paragraph=paragraph)
        for fact in dict.fromkeys(fact.text for fact in facts)
        if (paragraph := evidence[fact].paragraph) is not None
        and not _supports(evidence[fact].scores, settings.thresholds)
        for entity in entities(fact)
    )
    drafts = yield from _questioned(drafts, shots[AnswerForm.QUESTION], settings.reading)
    drafts = yield from _answerable(drafts, shots[AnswerForm.SPAN], settings.reading)
    statements = yield from _statements(drafts, shots[AnswerForm.SPAN], settings.reading)
    judged = yield from all_of(
        (Entail(premise=draft.paragraph, hypothesis=statement) for draft, statement in statements), Entailed
    )
    best: dict[str, tuple[str, Scores | Entailed]] = {
        fact.text: (fact.text, evidence[fact.text].scores) for fact in facts
    }
    for (draft, statement), entailed in zip(statements, judged, strict=True):
        if _supports(entailed, settings.thresholds) and entailed.entailment > best[draft.fact][1].entailment:
            best[draft.fact] = statement, entailed
    return tuple(_generated(fact, *best[fact.text]) for fact in facts)


def _generated(fact: ChosenFact, statement: str, scores: Scores | Entailed) -> ChosenFact:
    if statement == fact.text:
        return fact
    return replace(
        fact, text=statement, origin="generated", entailment=scores.entailment, contradiction=scores.contradiction
    )


def _supports(scores: Scores | Entailed, thresholds: Thresholds) -> bool:
    return scores.entailment >= thresholds.entailment and scores.contradiction < thresholds.contradiction


def _questioned(
    drafts: tuple[_Draft, ...], demonstrations: Demonstrations, reading: ReaderSettings
) -> Part[tuple[_Draft, ...]]:
    """The drafts with a question about each entity; those for which the model writes none are left out."""
    prompts = (
        few_shot_prompt(demonstrations=demonstrations, question=entity_question(draft.fact, draft.entity.text))
        for draft in drafts
    )
    questions = yield from texts_of(
        Reason(prompt=prompt, max_tokens=reading.max_answer_tokens, until="line") for prompt in prompts
    )
    return tuple(replace(draft, question=text) for draft, text in zip(drafts, questions, strict=True) if text)


def _answerable(
    drafts: tuple[_Draft, ...], demonstrations: Demonstrations, reading: ReaderSettings
) -> Part[tuple[_Draft, ...]]:
    """The drafts whose question, asked of the fact itself, has the entity as its answer (Honovich et al., 2021)."""
    answers = yield from texts_of(
        _ask(draft.question, passage_of(draft.fact), demonstrations, reading) for draft in drafts
    )
    return tuple(
        draft
        for draft, answer in zip(drafts, answers, strict=True)
        if normalized(answer) == normalized(draft.entity.text)
    )


def _statements(
    drafts: tuple[_Draft, ...], demonstrations: Demonstrations, reading: ReaderSettings
) -> Part[tuple[tuple[_Draft, str], ...]]:
    """The facts with the evidence's answer in place of the entity, where that differs."""
    answers = yield from texts_of(_ask(draft.question, draft.paragraph, demonstrations, reading) for draft in drafts)
    stated = (
        (draft, draft.entity.replaced(draft.fact, answer.removesuffix(".")))
        for draft, answer in zip(drafts, answers, strict=True)
        if normalized(answer) not in {"", UNKNOWN, normalized(draft.entity.text)}
    )
    return tuple(stated)


def _ask(question: str, paragraph: Paragraph, demonstrations: Demonstrations, reading: ReaderSettings) -> Read:
    prompt = few_shot_prompt(demonstrations=demonstrations, paragraphs=(paragraph,), question=question)
    return Read(prompt=prompt, max_tokens=reading.max_answer_tokens)


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
