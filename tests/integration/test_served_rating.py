"""Raters behind servers that answer as the test tells them, and behind llama.cpp's own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="httpx2 isn't installed")

from cotrail.core.actions.embed import Rate
from cotrail.core.ports.encoders import second_texts
from cotrail.core.questions import Paragraph
from cotrail.core.results import Rated
from cotrail.engines.rating.raters import RATERS
from cotrail.errors import TransientStepError
from tests.integration.served import KEY, Reply, Served, answer, computed, verbatim
from tests.integration.text_servers import Make, llama_cpp, reranked, role_opener, score_of, tei_reranked

VELL = Paragraph(id="v", title="Vell", text="The Vell flows into the Amber Sea.")
FACT = Paragraph(id="f", title="", text="The Vell is a river.")
ASKED = Rate(by="relevance", text="Where does the Vell end ?", others=("Which sea ?", "Who ?"), paragraphs=(VELL, FACT))


def expected(asked: Rate, scale: float = 1.0) -> Rated:
    return Rated(scores=tuple(round(score_of(asked.text, each) * scale, 6) for each in second_texts(asked)))


@pytest.fixture
def open_rater(tmp_path: Path, served: Served) -> Iterator[Make]:
    """Opens the server as a rater; fields are those of its table."""
    served.replies = [computed(reranked)]
    with role_opener(RATERS, "raters", tmp_path, served.url) as opener:
        yield opener


def test_scores_are_asked_for_in_the_form_of_vllm_jina_and_cohere_and_taken_by_their_indexes(
    open_rater: Make, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    rater = open_rater(key_variable="A_KEY", extra={"return_documents": False})
    assert rater.rate([ASKED]) == [expected(ASKED)]
    [asked] = served.asked
    assert asked.path == "/v1/rerank"
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    documents = ["Which sea ?", "Who ?", VELL.statement, FACT.statement]
    assert asked.body == {
        "model": "m",
        "query": ASKED.text,
        "documents": documents,
        "top_n": 4,
        "return_documents": False,
    }


@pytest.mark.parametrize(("raw", "scale"), [(False, 0.5), (True, 1)])
def test_tei_is_asked_in_its_own_form(
    open_rater: Make,
    served: Served,
    raw: bool,  # noqa: FBT001 - a parameter of the test
    scale: float,
) -> None:
    served.replies = [computed(tei_reranked)]
    rater = open_rater(served.url.removesuffix("/v1"), api="tei", raw_scores=raw)
    assert rater.rate([ASKED]) == [expected(ASKED, scale)]
    [asked] = served.asked
    assert asked.path == "/rerank"
    assert asked.body == {"query": ASKED.text, "texts": second_texts(ASKED), "raw_scores": raw}


def test_each_rating_is_a_request_of_its_own_up_to_the_size_of_the_table(open_rater: Make, served: Served) -> None:
    twice = Rate(by="duplicate", text="Who ?", others=("Where ?", "Who is it ?", "Where ?"))
    long = Rate(by="duplicate", text="Who ?", others=tuple(f"Who {n} ?" for n in range(7)))
    asked = [ASKED, twice, twice, long, Rate(by="duplicate", text="Who ?")]
    assert open_rater(batch_size=4).rate(asked) == [expected(each) for each in asked]
    assert sorted(len(each.body["documents"]) for each in served.asked) == [2, 3, 4, 4]


def test_what_was_rated_is_not_asked_for_again(open_rater: Make, served: Served) -> None:
    rater = open_rater()
    assert rater.rate([ASKED]) == rater.rate([ASKED]) == [expected(ASKED)]
    assert len(served.asked) == 1


def test_nothing_to_compare_with_has_no_scores_and_asks_nobody(open_rater: Make, served: Served) -> None:
    rater = open_rater()
    assert rater.rate([Rate(by="relevance", text="the river")]) == [Rated(scores=())]
    assert rater.rate([]) == []
    assert served.asked == []


def results(*entries: tuple[Any, Any]) -> Reply:
    return answer(200, {"results": [{"index": index, "relevance_score": each} for index, each in entries]})


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (results((0, 0.5)), TransientStepError, "was sent 2 texts, numbered from 0, and answered 1: 0"),
        (results((0, 0.5), (1, 0.5), (2, 0.5)), TransientStepError, "answered 3: 0, 1, 2"),
        (results((1, 0.5), (1, 0.25)), TransientStepError, "answered 2: 1, 1"),
        (results((1, 0.5), (2, 0.25)), TransientStepError, "answered 2: 1, 2"),
        (results(), TransientStepError, "answered 0: none"),
        (results((0, 0.5), (1, None)), TransientStepError, "Expected `float`, got `null`"),
        (results((0, 0.5), (1, "0.5")), TransientStepError, "Expected `float`, got `str`"),
        (results((0, 0.5), ("1", 0.5)), TransientStepError, "Expected `int`, got `str`"),
        (answer(200, {"results": [{"index": 0}]}), TransientStepError, "missing required field `relevance_score`"),
        (answer(200, {"data": []}), TransientStepError, "missing required field `results`"),
        (answer(200, [{"index": 0, "score": 1}]), TransientStepError, "Expected `object`, got `array`"),
        (verbatim(b'{"results": [{"index": 0, "relevance_sc'), TransientStepError, "truncated"),
        (verbatim(b'{"results": [{"index": 0, "relevance_score": NaN}]}'), TransientStepError, "malformed"),
        (verbatim(b"<html>A gateway</html>"), TransientStepError, "malformed.*look at `url` and `api`"),
        (verbatim(b""), TransientStepError, "truncated"),
    ],
)
def test_an_answer_that_is_none_is_a_clear_error(
    open_rater: Make, served: Served, reply: Reply, kind: type[Exception], said: str
) -> None:
    rater = open_rater()
    served.replies = [reply]
    with pytest.raises(kind, match=said) as caught:
        rater.rate([Rate(by="duplicate", text="Who ?", others=("a", "b"))])
    assert type(caught.value) is kind


@pytest.mark.parametrize("content", [{"results": []}, [{"index": 0, "score": 1}], [{"index": 0}, {"index": 1}], "x"])
def test_an_answer_of_tei_s_that_is_none_is_a_clear_error(open_rater: Make, served: Served, content: Any) -> None:
    rater = open_rater(api="tei")
    served.replies = [answer(200, content)]
    with pytest.raises(TransientStepError, match=r"was sent 2 texts|doesn't answer in the form of its API"):
        rater.rate([Rate(by="duplicate", text="Who ?", others=("a", "b"))])


# llama.cpp's own server


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    with llama_cpp("RANK") as address:
        yield address


def test_llama_cpp_rates_in_both_forms(open_rater: Make, llama: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    (one,) = open_rater(f"{llama}/v1", key_variable="A_KEY").rate([ASKED])
    (other,) = open_rater(llama, key_variable="A_KEY", api="tei", raw_scores=True).rate([ASKED])
    assert one == other
    assert len(one.scores) == 4
    assert len(set(one.scores)) > 1
