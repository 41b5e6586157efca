"""Embedders behind servers that answer as the test tells them, and behind llama.cpp's own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="httpx2 isn't installed")

from cotrail.core.actions.embed import Embed
from cotrail.core.ports.rate_limiter import Limits, Need
from cotrail.core.questions import Paragraph
from cotrail.core.results import Embedded
from cotrail.engines.embedding import served as adapter
from cotrail.engines.embedding.embedders import EMBEDDERS
from cotrail.engines.rate_limits import ProcessLimiter
from cotrail.errors import BlockedError, ModelChangedError, StepError, TransientStepError
from tests.integration.served import KEY, Reply, Served, answer, computed, verbatim
from tests.integration.text_servers import (
    DIMENSIONS,
    Make,
    embedding_of,
    llama_cpp,
    openai_embeddings,
    packed,
    role_opener,
    similarity_of,
    tei_embeddings,
)

VELL = Paragraph(id="v", title="Vell", text="The Vell flows into the Amber Sea.")
FACT = Paragraph(id="f", title="", text="The Vell is a river.")
ASKED = Embed(sentences=("Where does the Vell end?", "Who?"), paragraphs=(VELL, FACT))
SIMILARITIES: Any = tuple(
    tuple(pytest.approx(similarity_of(sentence, each.statement), abs=2e-6) for each in ASKED.paragraphs)
    for sentence in ASKED.sentences
)


@pytest.fixture
def open_embedder(tmp_path: Path, served: Served) -> Iterator[Make]:
    """Opens the server as an embedder; fields are those of its table."""
    served.replies = [computed(openai_embeddings)]
    with role_opener(EMBEDDERS, "embedders", tmp_path, served.url) as opener:
        yield opener


def sent(served: Served) -> list[list[str]]:
    """The texts of each request."""
    return [asked.body.get("input") or asked.body["inputs"] for asked in served.asked]


def test_embeddings_are_asked_for_in_openai_s_form_and_taken_by_their_indexes(
    open_embedder: Make, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    assert open_embedder(key_variable="A_KEY").compare([ASKED]) == [Embedded(similarities=SIMILARITIES)]
    [asked] = served.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    texts = [*ASKED.sentences, *(each.statement for each in ASKED.paragraphs)]
    assert asked.body == {"model": "m", "input": texts}


def test_packed_embeddings_are_those_that_are_written_out(open_embedder: Make, served: Served) -> None:
    assert open_embedder(encoding="base64").compare([ASKED]) == [Embedded(similarities=SIMILARITIES)]
    assert served.asked[0].body["encoding_format"] == "base64"


def test_tei_is_asked_in_its_own_form(open_embedder: Make, served: Served) -> None:
    served.replies = [computed(tei_embeddings)]
    url = served.url.removesuffix("/v1")
    assert open_embedder(url, api="tei", extra={"truncate": True}).compare([ASKED]) == [
        Embedded(similarities=SIMILARITIES)
    ]
    [asked] = served.asked
    assert asked.path == "/embed"
    texts = [*ASKED.sentences, *(each.statement for each in ASKED.paragraphs)]
    assert asked.body == {"inputs": texts, "normalize": True, "truncate": True}


def test_dimensions_and_further_fields_are_sent(open_embedder: Make, served: Served) -> None:
    embedder = open_embedder(dimensions=8, extra={"truncate_prompt_tokens": -1})
    (result,) = embedder.compare([Embed(sentences=("a",), paragraphs=(FACT,))])
    assert served.asked[0].body | {"dimensions": 8, "truncate_prompt_tokens": -1} == served.asked[0].body
    assert result.similarities[0][0] != round(similarity_of("a", FACT.statement), 6)


def test_sentences_and_paragraphs_have_prefixes_of_their_own(open_embedder: Make, served: Served) -> None:
    embedder = open_embedder(query_prefix="query: ", text_prefix="passage: ")
    same = Paragraph(id="s", title="", text="Who?")
    (result,) = embedder.compare([Embed(sentences=("Who?",), paragraphs=(same,))])
    assert sent(served) == [["query: Who?", "passage: Who?"]]
    assert result.similarities[0][0] == pytest.approx(similarity_of("query: Who?", "passage: Who?"), abs=2e-6)
    (result,) = embedder.compare([Embed(sentences=("Who?", "Where?"))])
    assert sent(served)[1:] == [["query: Where?"]]
    assert result.similarities[0][0] == result.similarities[1][1] == 1.0
    assert result.similarities[0][1] == result.similarities[1][0]


def test_what_is_asked_together_is_one_request_up_to_the_size_of_the_table(open_embedder: Make, served: Served) -> None:
    asked = [Embed(sentences=(f"sentence {n}",), paragraphs=(VELL,)) for n in range(6)]
    results = open_embedder(batch_size=3).compare(asked)
    assert sorted(map(len, sent(served))) == [1, 3, 3]
    assert sorted(text for each in sent(served) for text in each) == sorted(
        [VELL.statement, *(each.sentences[0] for each in asked)]
    )
    expected = [similarity_of(each.sentences[0], VELL.statement) for each in asked]
    assert [each.similarities[0][0] for each in results] == pytest.approx(expected, abs=2e-6)


def test_a_text_is_asked_for_once_and_remembered(
    open_embedder: Make, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = open_embedder()
    first = embedder.compare([ASKED, ASKED])
    assert first[0] == first[1] == embedder.compare([ASKED])[0]
    assert len(served.asked) == 1
    monkeypatch.setattr(adapter, "MOST_EMBEDDINGS", 1)
    embedder.compare([Embed(sentences=("another",))])
    assert embedder.compare([ASKED])[0] == first[0]
    assert len(sent(served)[-1]) == 4


def test_nothing_asked_is_nothing_sent(open_embedder: Make, served: Served) -> None:
    embedder = open_embedder()
    assert embedder.compare([]) == []
    asked = [Embed(sentences=()), Embed(sentences=(), paragraphs=(VELL,))]
    assert embedder.compare(asked) == [Embedded(similarities=())] * 2
    assert served.asked == []


def data(*entries: tuple[Any, Any]) -> Reply:
    return answer(200, {"data": [{"index": index, "embedding": each} for index, each in entries]})


GOOD = embedding_of("a")


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (data((0, GOOD)), TransientStepError, "was sent 2 texts, numbered from 0, and answered 1: 0"),
        (data((0, GOOD), (1, GOOD), (2, GOOD)), TransientStepError, "answered 3: 0, 1, 2"),
        (data((0, GOOD), (0, GOOD)), TransientStepError, "answered 2: 0, 0"),
        (data((1, GOOD), (2, GOOD)), TransientStepError, "answered 2: 1, 2"),
        (data((-1, GOOD), (0, GOOD)), TransientStepError, "answered 2: -1, 0"),
        (data(), TransientStepError, "answered 0: none"),
        (data(*((n, [1.0]) for n in range(99))), TransientStepError, "answered 99: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...$"),
        (data((0, GOOD), (True, GOOD)), TransientStepError, "Expected `int`, got `bool`"),
        (data((0, GOOD), (None, GOOD)), TransientStepError, "Expected `int`, got `null`"),
        (data((0, GOOD), (1, [None] * DIMENSIONS)), TransientStepError, "Expected `float`, got `null`"),
        (data((0, GOOD), (1, [GOOD])), TransientStepError, "Expected `float`, got `array`"),
        (data((0, GOOD), (1, [0.0] * DIMENSIONS)), StepError, "zeros, or of what isn't numbers"),
        (data((0, GOOD), (1, [])), StepError, "zeros, or of what isn't numbers"),
        (data((0, GOOD), (1, [1e300] * DIMENSIONS)), StepError, "zeros, or of what isn't numbers"),
        (data((0, GOOD), (1, packed([float("nan")] * DIMENSIONS))), StepError, "what isn't numbers"),
        (data((0, GOOD), (1, packed([float("inf")] * DIMENSIONS))), StepError, "what isn't numbers"),
        (data((0, GOOD), (1, "AAAA")), TransientStepError, "isn't 32-bit numbers in base64"),
        (data((0, GOOD), (1, "no base64!")), TransientStepError, "isn't 32-bit numbers in base64"),
        (data((0, GOOD), (1, "é")), TransientStepError, "isn't 32-bit numbers in base64"),
        (data((0, GOOD), (1, GOOD[:-1])), ModelChangedError, "31 numbers a text, and answered 32 before"),
        (answer(200, {"results": []}), TransientStepError, "missing required field `data`"),
        (answer(200, {"error": {"message": "oh"}}), TransientStepError, "missing required field `data`"),
        (answer(200, [GOOD, GOOD]), TransientStepError, "Expected `object`, got `array`"),
        (answer(200, None), TransientStepError, "Expected `object`, got `null`"),
        (verbatim(b'{"data": [{"index": 0, "embedding": [1.0, 0'), TransientStepError, "truncated"),
        (verbatim(b'{"data": [{"index": 0, "embedding": [NaN]}]}'), TransientStepError, "malformed"),
        (verbatim(b"<!DOCTYPE html><html>A gateway</html>"), TransientStepError, "malformed.*look at `url` and `api`"),
        (verbatim(b""), TransientStepError, "truncated"),
        (verbatim(b"\xff\xfe" * 9), TransientStepError, "doesn't answer in the form of its API"),
        (verbatim(b'{"data":' + b"[" * 100_000), TransientStepError, "doesn't answer in the form of its API"),
    ],
)
def test_an_answer_that_is_none_is_a_clear_error(
    open_embedder: Make, served: Served, reply: Reply, kind: type[Exception], said: str
) -> None:
    embedder = open_embedder()
    served.replies = [reply]
    with pytest.raises(kind, match=said) as caught:
        embedder.compare([Embed(sentences=("a", "b"))])
    assert type(caught.value) is kind


def test_tei_s_answers_are_counted_too(open_embedder: Make, served: Served) -> None:
    embedder = open_embedder(served.url, api="tei")
    served.replies = [answer(200, [GOOD])]
    with pytest.raises(TransientStepError, match="was sent 2 texts, numbered from 0, and answered 1"):
        embedder.compare([Embed(sentences=("a", "b"))])


def test_an_answer_that_breaks_off_is_tried_again_later(open_embedder: Make, served: Served) -> None:
    def breaks_off(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"data": [')
        handler.close_connection = True

    embedder = open_embedder()
    served.replies = [breaks_off]
    with pytest.raises(TransientStepError, match="broke off"):
        embedder.compare([ASKED])


class NotedLimiter(ProcessLimiter):
    """Notes what is reserved and what is corrected."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple[str, Need]] = []

    def reserve(self, pool: str, need: Need, limits: Limits, longest: float) -> float:
        self.noted.append((pool, need))
        return super().reserve(pool, need, limits, longest)

    def settle(self, pool: str, more: Need, limits: Limits) -> None:
        self.noted.append((pool, more))
        super().settle(pool, more, limits)


def test_tokens_are_reserved_by_an_estimate_and_settled_by_what_the_server_counted(
    open_embedder: Make, served: Served
) -> None:
    limiter = NotedLimiter()
    embedder = open_embedder(account="acme", limits={"input_tokens": 1_000_000}, limiter=limiter)
    embedder.compare([Embed(sentences=("a" * 60, "b" * 30))])
    reserved, more = Need(input_tokens=30), Need(requests=0, input_tokens=-20)
    assert limiter.noted == [("acme/m", reserved), ("acme/m", more)]


def test_a_server_that_has_another_model_now_blocks(open_embedder: Make, served: Served) -> None:
    embedder = open_embedder()
    embedder.compare([ASKED])
    served.replies = [data((0, GOOD[:8]))]
    with pytest.raises(
        ModelChangedError, match="8 numbers a text, and answered 32 before: it has another model than m"
    ):
        embedder.compare([Embed(sentences=("b",))])


def test_a_server_that_takes_no_notice_of_dimensions_blocks(open_embedder: Make, served: Served) -> None:
    embedder = open_embedder(dimensions=8)
    served.replies = [data((0, GOOD))]
    with pytest.raises(
        BlockedError, match="answers 32 numbers a text, and the table of m asks for 8: take `dimensions`"
    ):
        embedder.compare([Embed(sentences=("b",))])


# llama.cpp's own server


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    with llama_cpp("MEAN") as address:
        yield address


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_llama_cpp_embeds(open_embedder: Make, llama: str, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    embedder = open_embedder(f"{llama}/v1", key_variable="A_KEY", encoding=encoding, batch_size=3)
    sentences = ("The river flows into the sea.", "A river ends in the sea.", "What is the price of this old car?")
    (result,) = embedder.compare([Embed(sentences=sentences)])
    rows = result.similarities
    assert [rows[n][n] for n in range(3)] == [1.0] * 3
    assert rows[0][1] == rows[1][0] > rows[0][2]
    (compared,) = embedder.compare([Embed(sentences=sentences[:1], paragraphs=(VELL, FACT))])
    assert all(-1 <= each <= 1 for each in compared.similarities[0])


def test_llama_cpp_says_what_is_wrong(open_embedder: Make, llama: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    embedder = open_embedder(f"{llama}/v1", key_variable="A_KEY")
    with pytest.raises(StepError, match="Input content cannot be empty"):
        embedder.compare([Embed(sentences=("",))])
    with pytest.raises(TransientStepError, match="is too large to process"):
        embedder.compare([Embed(sentences=("the river " * 600,))])
    monkeypatch.setenv("A_KEY", "another")
    with pytest.raises(BlockedError, match="answered 401: set the environment variable A_KEY"):
        open_embedder(f"{llama}/v1", key_variable="A_KEY").compare([ASKED])
