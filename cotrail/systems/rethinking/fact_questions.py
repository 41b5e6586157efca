"""The questions of fact generation, and the demonstrations of asking and answering them (appendix A.4)."""

from cotrail.core.demonstrations import Demonstration, Demonstrations
from cotrail.core.paragraphs import Paragraph, passage_of

UNKNOWN = "unknown"
"""The answer where a paragraph doesn't hold one."""


def entity_question(fact: str, entity: str) -> str:
    """The prompt for a question about a part of a sentence."""
    return f"Which question about this sentence has the answer '{entity}'? {fact}"


def _asking(fact: str, entity: str, question: str) -> Demonstration:
    return Demonstration(id=question, paragraphs=(), question=entity_question(fact, entity), answer=question)


def _reading(paragraph: Paragraph, question: str, answer: str) -> Demonstration:
    return Demonstration(id=question, paragraphs=(paragraph,), question=question, answer=answer)


ENTITY_QUESTIONS = Demonstrations(
    items=(
        _asking("Reykjavik is the capital of Iceland.", "Reykjavik", "Which city is the capital of Iceland?"),
        _asking("Lake Geneva is 310 metres deep.", "310", "How many metres deep is Lake Geneva?"),
        _asking("Lake Geneva is 310 metres deep.", "Lake Geneva", "Which lake is 310 metres deep?"),
        _asking("Carmen was composed by Georges Bizet.", "Georges Bizet", "Who composed Carmen?"),
        _asking("Carmen was composed by Georges Bizet.", "Carmen", "Which opera was composed by Georges Bizet?"),
        _asking("The Danube flows into the Black Sea.", "Black Sea", "Which sea does the Danube flow into?"),
        _asking("Mária Telkes was born in Budapest in 1900.", "Budapest", "Where was Mária Telkes born?"),
        _asking("Mária Telkes was born in Budapest in 1900.", "1900", "When was Mária Telkes born?"),
    )
)
"""Demonstrations of questions about one part or another of a sentence."""

SPANS = Demonstrations(
    items=(
        _reading(
            Paragraph(
                id="lake-geneva",
                title="Lake Geneva",
                text="Lake Geneva lies north of the Alps and is shared between Switzerland and France. It is 310 "
                "metres deep, and Lausanne and Geneva are on its shores.",
            ),
            "How many metres deep is Lake Geneva?",
            "310",
        ),
        _reading(passage_of("Mária Telkes was born in Budapest in 1900."), "When was Mária Telkes born?", "1900"),
        _reading(
            Paragraph(
                id="carmen",
                title="Carmen",
                text="Carmen is an opera in four acts by the French composer Georges Bizet. It was first performed in "
                "Paris in 1875.",
            ),
            "Who composed Carmen?",
            "Georges Bizet",
        ),
        _reading(passage_of("Reykjavik is the capital of Iceland."), "In which year was Reykjavik founded?", UNKNOWN),
    )
)
"""Demonstrations of answers by the words of a paragraph."""
