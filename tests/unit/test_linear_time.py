"""Whatever sees text of models, corpora or users takes time linear in it, however the text repeats itself."""

import re
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cotrail.common import sentence_boundaries
from cotrail.common.answer_normalization import contained, normalized, rouge_l
from cotrail.common.printable_text import cut, printable
from cotrail.common.sentence_boundaries import WINDOW_CHARACTERS, first_sentence
from cotrail.core.answer_extraction import released_answer, stated_answer
from cotrail.core.calls import split_calls
from cotrail.core.generation import Until
from cotrail.core.questions import GoldParagraph, Hit, Paragraph, parse_titles
from cotrail.core.results import Retrieved
from cotrail.core.structured_output import Form
from cotrail.core.table_sentences import premise_sentences
from cotrail.data.corpora.documents import of_text, passages
from cotrail.data.datasets.iirc import text_of
from cotrail.data.datasets.spec import Scoring
from cotrail.engines.knowledge.words import words
from cotrail.engines.language_models.llamacpp.server import LlamaCppStream
from cotrail.engines.language_models.oracle import statement
from cotrail.engines.language_models.served.prompt_fields import broken
from cotrail.engines.language_models.stop_conditions import kept, stop_condition
from cotrail.evaluation.causes.explaining import explain
from cotrail.evaluation.causes.gold_fates import FoundParagraph, QuestionRecord, SeenParagraph
from cotrail.evaluation.metrics.answer_scores import drop_scores, predicted_spans, repaired
from cotrail.faithfulness import paper
from cotrail.faithfulness.rules import released_prediction
from cotrail.systems.ircot import is_reasoning
from cotrail.systems.judge.rubric import built_in, verdict_schema
from cotrail.systems.judge.system import unused_mark
from cotrail.systems.parts.retrieval import RetrievalSettings, collect
from cotrail.systems.rethinking.evidence import entities
from cotrail.systems.searchain.chain_of_query import read_chain
from cotrail.systems.searchain.prompts import marked_parts, parts_by_answers
from cotrail.systems.searchain.tree import Node
from tests.cases import each_case
from tests.unit.product_patterns import MADE, SEARCHED, patterns, uses_outside_of_constants
from tests.unit.repeated_texts import PIECES, repeated, texts
from tests.unit.scored import paragraph_recall

CHARACTERS = 10_000
EACH = re.compile(r"(?s:.)")
ROOM = 60
"""How much longer than a look at every character a search may take; it is usually shorter, and a quadratic one takes
hundreds of times as long."""

WAYS: dict[str, Callable[[re.Pattern[Any], Any], object]] = {
    "finditer": lambda pattern, text: deque(pattern.finditer(text), maxlen=0),
    "fullmatch": lambda pattern, text: pattern.fullmatch(text),
}


class SlowError(BaseException):
    """No part of the product catches it."""


def _stop(signum: int, frame: object) -> None:
    raise SlowError


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises SlowError where the block takes more time of the processor; other processes don't count."""
    former = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)


def looking_seconds(characters: int) -> float:
    """The time of the processor that a look at every character of a text takes on this machine."""
    # A long text, since some clocks tell only hundredths of a second.
    measured = 2_000_000
    text, start = "a" * measured, time.process_time()
    EACH.sub("", text)
    return (time.process_time() - start) * characters / measured


def is_linear(look: Callable[[], object], characters: int) -> bool:
    """Return whether a look at so many characters takes no more than `ROOM` times that of a simple look.

    Measured again where it took longer: the machine may do something else in the midst of one look.
    """
    return _is_within(look, ROOM * usual_seconds(characters)) or any(
        _is_within(look, ROOM * looking_seconds(characters)) for _ in range(3)
    )


@cache
def usual_seconds(characters: int) -> float:
    """The same, measured once."""
    return looking_seconds(characters)


def _is_within(look: Callable[[], object], seconds: float) -> bool:
    try:
        with within(seconds):
            look()
    except SlowError:
        return False
    return True


@each_case("name", lambda: sorted(patterns()))
def test_every_pattern_is_linear(name: str) -> None:
    pattern = patterns()[name]
    for text in texts(pattern, CHARACTERS):
        given = text.encode() if isinstance(pattern.pattern, bytes) else text
        for way, look in WAYS.items():
            assert is_linear(lambda: look(pattern, given), CHARACTERS), f"{way} in {text[:40]!r}...{text[-4:]!r}"  # noqa: B023


def test_patterns_are_constants_of_modules_or_made_where_this_test_knows() -> None:
    known = {place: ["compile"] for place in MADE} | {place: ["search"] for place in SEARCHED}
    assert uses_outside_of_constants() == known


@each_case("pattern", [r"(\d[\d,]*\.?\d+|\d+) = ", r"\s+$", r"“[^”]+”", r"\s*\n"])
def test_a_slow_pattern_would_be_noticed(pattern: str) -> None:
    slow = re.compile(pattern)
    characters = 5 * CHARACTERS  # so many that the time doesn't depend on what else the machine does
    looks = (partial(WAYS["finditer"], slow, text) for text in texts(slow, characters))
    assert not all(is_linear(look, characters) for look in looks)


def words_of(text: str, size: int) -> list[str]:
    """The text in pieces, as a model writes it."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def fed(until: Until, size: int) -> Callable[[str], object]:
    def feed(text: str) -> object:
        complete = stop_condition(until, ("\n\n\n\n",))
        return [complete(piece) for piece in words_of(text, size)]

    return feed


def streamed(text: str) -> object:
    stream = LlamaCppStream("end", lambda: False)
    chunks = [{"choices": [{"text": piece, "finish_reason": None}]} for piece in words_of(text, 40)]
    return [stream.take(chunk) for chunk in chunks], stream.kept()


NODES = tuple(
    Node(round=1, number=number, parent=None, query="q", answer=f"{number}x", unsolved=False) for number in range(1, 30)
)
PARAGRAPH = Paragraph(id="p", title="T", text="one two")


def wrong(text: str) -> QuestionRecord:
    """A wrong answer with the text in every place."""
    paragraph = Paragraph(id="q", title="T", text=text)
    return QuestionRecord(
        question=text[1:],
        scoring=Scoring("hotpotqa"),
        answers=("one", text[:20]),
        answer=text,
        sentences=(text, f"T {text[3:]}"),
        gold=(GoldParagraph(title="T", text=text),),
        found=(FoundParagraph(paragraph=paragraph, step=0, rank=1),),
        seen=(SeenParagraph(paragraph=paragraph, step=1, text=text),),
    )


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "first_sentence": first_sentence,
    "sentences": lambda text: list(sentence_boundaries.sentences(text)),
    "a sentence as it is written": fed("sentence", 3),
    "a chain as it is written": fed("chain", 3),
    "a line as it is written": fed("line", 3),
    "what is kept of a chain": lambda text: kept(text, "chain"),
    "a stream": streamed,
    "sentences of a chain": paper.sentences,
    "all sentences": paper.all_sentences,
    "facts": lambda text: paper.facts(text, "commonsense"),
    "a verdict": lambda text: paper.prediction(text, "tabular"),
    "a released verdict": lambda text: released_prediction(text, "commonsense"),
    "a stated answer": stated_answer,
    "a released answer": lambda text: released_answer(text, chain=True),
    "titles": parse_titles,
    "a conclusion": lambda text: is_reasoning(text, ("so ",)),
    "a chain of queries": lambda text: read_chain(text, round=1, most=20, answers="line"),
    "marks": lambda text: marked_parts(text, dict(enumerate(NODES, start=1))),
    "parts by answers": lambda text: parts_by_answers(text, NODES),
    "calls": split_calls,
    "control tokens": broken,
    "normalization": normalized,
    "containment": lambda text: contained("1a", text),
    "DROP": lambda text: drop_scores(predicted_spans(text), ("one", "two")),
    "ROUGE-L": lambda text: rouge_l(text, "one 1 a two three"),
    "support": lambda text: paragraph_recall([PARAGRAPH], [GoldParagraph(title="T", text=text)]),
    "the cause of a wrong answer": lambda text: explain(wrong(text)),
    "a judge's verdict": Form(schema=verdict_schema(built_in("correct")), decides="verdict").fit,
    "a mark that a judge is shown": lambda text: unused_mark([text, text[1:]]),
    "repair": repaired,
    "HTML": text_of,
    "Markdown": lambda text: list(of_text(text)),
    "passages": lambda text: list(passages([text])),
    "words": words,
    "entities": entities,
    "a premise": premise_sentences,
    "the oracle": lambda text: statement(text, "X"),
    "a terminal": printable,
    "an excerpt": lambda text: cut(text, 80),
    "similar paragraphs": lambda text: collect(
        (PARAGRAPH, Paragraph(id="q", title="T", text=text)),
        Retrieved(hits=(Hit(paragraph=Paragraph(id="r", title="T", text=text[1:]), rank=1, score=1.0),)),
        RetrievalSettings(),
    ),
}
"""What the product does with texts that it didn't write."""

SHORT, TIMES = WINDOW_CHARACTERS, 8
"""Sentences are found window by window, so that time may grow faster than the text within one."""

TRIES = 5
"""How often a growth is measured again: the clock of a busy machine stands still now and then."""


def seconds(look: Callable[[], object]) -> float:
    """The time of the processor that a look takes; SlowError after a minute."""
    start = time.process_time()
    with within(60):
        look()
    return time.process_time() - start


def grows_linearly(look: Callable[[str], object], piece: str) -> bool:
    """Return whether a text that is longer by a factor takes longer by hardly more than that."""
    short, long = (seconds(partial(look, repeated(piece, SHORT * times))) for times in (1, TIMES))
    # Quadratic growth would be the square; what takes next to no time isn't measured well.
    return long <= 3 * TIMES * short + ROOM * usual_seconds(SHORT * TIMES)


@each_case("name", FUNCTIONS)
def test_every_function_is_linear(name: str) -> None:
    look = FUNCTIONS[name]
    look("a")  # what is imported and compiled at the first call
    for piece in PIECES:
        assert any(grows_linearly(look, piece) for _ in range(TRIES)), f"{piece!r}"


def test_a_function_of_quadratic_time_would_be_noticed() -> None:
    assert not grows_linearly(lambda text: [text.find("ab", start) for start in range(0, len(text), 4)], "a")


NUMBERS = st.lists(st.sampled_from(["1", "23", ",", ".", " + ", " - ", " = ", " ", "="]), max_size=14).map("".join)
AUTHORS = re.compile(r"(\d[\d,]*\.?\d+|\d+) [+-] (\d[\d,]*\.?\d+|\d+) = (\d[\d,]*\.?\d+|\d+)")


@given(NUMBERS)
def test_arithmetic_is_found_where_the_authors_find_it(text: str) -> None:
    assert is_reasoning(text, ()) == (AUTHORS.search(text) is not None)
