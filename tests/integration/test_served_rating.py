"""Raters behind servers that answer as the test tells them, and behind llama.cpp's own."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

pytest.importorskip("httpx2", reason="httpx2 isn't installed")

from cotrail.core.actions.rate import Rate
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.cancellation import Interrupted
from cotrail.core.ports.rater import Rater, second_texts
from cotrail.core.results import Rated
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.rating.raters import RATERS
from cotrail.errors import (
    BlockedError,
    BusyError,
    InputError,
    PromptTooLongError,
    QuotaError,
    StepError,
    TransientStepError,
    UnavailableError,
)
from tests.conftest import Eventually
from tests.integration.served import KEY, Reply, Served, answer, computed, held, verbatim
from tests.integration.text_servers import llama_cpp, reranked, score_of, tei_reranked

VELL = Paragraph(id="v", title="Vell", text="The Vell flows into the Amber Sea.")
FACT = Paragraph(id="f", title="", text="The Vell is a river.")
ASKED = Rate(by="relevance", text="Where does the Vell end ?", others=("Which sea ?", "Who ?"), paragraphs=(VELL, FACT))

Make = Callable[..., Any]


def expected(asked: Rate, scale: float = 1.0) -> Rated:
    return Rated(scores=tuple(round(score_of(asked.text, each) * scale, 6) for each in second_texts(asked)))


def found(home: Path, url: str, **fields: object) -> NamedEngine[Rater]:
    table = {"engine": "server", "url": url, "model": "m", "timeout_seconds": 60.0} | fields
    (home / "models.toml").write_text(tomli_w.dumps({"raters": {"mine": table}}))
    return RATERS.find(home / "models.toml", "mine")


@pytest.fixture
def open_rater(tmp_path: Path, served: Served) -> Iterator[Make]:
    """Opens the server as a rater; fields are those of its table."""
    made: list[Any] = []

    def open_(url: str = "", **fields: object) -> Any:
        made.append(found(tmp_path, url or served.url, **fields).open("fast"))
        return made[-1]

    served.replies = [computed(reranked)]
    yield open_
    for each in made:
        each.interrupt()


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


def test_no_more_requests_are_under_way_than_the_table_says(
    open_rater: Make, served: Served, eventually: Eventually
) -> None:
    go = threading.Event()
    served.replies = [held(go, computed(reranked))]
    rater = open_rater(in_flight=3)
    asked = [Rate(by="duplicate", text=each, others=("Who ?",)) for each in "abcdefgh"]
    results: list[list[Rated]] = []
    thread = threading.Thread(target=lambda: results.append(rater.rate(asked)))
    thread.start()
    eventually(lambda: len(served.asked) == 3, "three requests are under way")
    go.set()
    thread.join(60)
    assert results == [[expected(each) for each in asked]]


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


def test_an_answer_without_end_is_cut_off(open_rater: Make, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotrail.engines.language_models.served.client.MAX_STREAM_BYTES", 2**20)
    rater = open_rater()
    served.replies = [verbatim(b" " * 2**21)]
    with pytest.raises(StepError, match="the server wrote more than 1 MiB"):
        rater.rate([ASKED])


@pytest.mark.parametrize(
    ("status", "error", "kind", "said"),
    [
        (400, {"message": "maximum context length is 512"}, PromptTooLongError, "truncate_prompt_tokens = -1"),
        (401, {"message": f"Incorrect API key: {KEY}"}, BlockedError, "set the environment variable A_KEY"),
        (429, {"code": "insufficient_quota", "message": "No more"}, QuotaError, "used up"),
        (501, {"message": f"no reranking {KEY}"}, TransientStepError, "no reranking"),
        (502, {"message": f"loading {KEY}"}, UnavailableError, "loading"),
    ],
)
def test_a_refusal_says_what_to_do_and_never_the_key(
    open_rater: Make,
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    error: Any,
    kind: type[Exception],
    said: str,
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    monkeypatch.setattr("cotrail.engines.language_models.served.client._BACKOFF", lambda _: 0.01)
    rater = open_rater(key_variable="A_KEY")
    served.replies = [answer(status, {"error": error})]
    with pytest.raises(kind, match=said) as caught:
        rater.rate([ASKED])
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)


def test_an_account_that_is_refused_leaves_its_provider_alone_and_what_was_answered_is_kept(
    open_rater: Make, served: Served
) -> None:
    rater = open_rater(account="acme", in_flight=1)
    served.replies = [computed(reranked), answer(529, {"error": {"message": "slow"}}, {"Retry-After": "90"})]
    asked = [Rate(by="duplicate", text=each, others=("Who ?",)) for each in "abc"]
    with pytest.raises(BusyError) as caught:
        rater.rate(asked)
    assert caught.value.seconds == 90
    assert [each.body["query"] for each in served.asked] == ["a", "b"]
    assert rater.rate(asked[:1]) == [expected(asked[0])]
    with pytest.raises(BusyError):
        rater.rate(asked[1:2])
    assert len(served.asked) == 2


def test_a_key_that_is_not_set_blocks(open_rater: Make) -> None:
    with pytest.raises(BlockedError, match="the environment variable A_KEY holds no key"):
        open_rater(key_variable="A_KEY")


def test_an_interrupt_ends_what_is_under_way(open_rater: Make, served: Served, eventually: Eventually) -> None:
    go, raised = threading.Event(), []
    served.replies = [held(go, computed(reranked))]
    rater = open_rater()

    def rate() -> None:
        with pytest.raises(Interrupted) as caught:
            rater.rate([ASKED])
        raised.append(caught.value)

    thread = threading.Thread(target=rate)
    thread.start()
    eventually(lambda: len(served.asked) == 1, "the request is under way")
    rater.interrupt()
    thread.join(60)
    go.set()
    assert len(raised) == 1


def test_the_identity_is_what_decides_the_scores_and_not_where_they_come_from(tmp_path: Path) -> None:
    def named(url: str = "http://a/v1", **fields: Any) -> str:
        return found(tmp_path, url, **fields).identity()

    usual = named()
    assert usual == found(tmp_path, "http://a/v1").open("fast").identity
    assert usual == named("https://elsewhere", key_variable="PATH", in_flight=3, timeout_seconds=1.0, account="acme")
    changes: list[dict[str, Any]] = [
        {"model": "other"},
        {"revision": "2"},
        {"extra": {"truncate": True}},
        {"api": "tei"},
        {"api": "tei", "raw_scores": True},
    ]
    assert len({usual, *(named(**each) for each in changes)}) == 1 + len(changes)


def test_a_server_promises_no_deterministic_profile(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mine is behind a server.*take the profile fast"):
        found(tmp_path, "http://a/v1").open("deterministic")


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
