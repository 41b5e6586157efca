"""What holds for each role that a server of texts plays, embedder and rater alike."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from msgspec import Struct

pytest.importorskip("httpx2", reason="httpx2 isn't installed")

from cotrail.core.actions.embed import Embed, Rate
from cotrail.core.ports.cancellation import Interrupted
from cotrail.engines.embedding.embedders import EMBEDDERS
from cotrail.engines.engine_catalogue import EngineCatalogue
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
from tests.integration.served import KEY, Asked, Reply, Served, answer, computed, held, verbatim
from tests.integration.text_servers import Make, found_role, openai_embeddings, reranked, role_opener


class Role(Struct, frozen=True):
    """ask: about these texts, in a request each where the size of the table is 1.

    text: the one that a request asks about.
    too_long: a server's complaint and the setting that the client then names.
    changes: fields that decide what is answered; `same`: those that don't; both besides the ones of any server.
    """

    table: str
    catalogue: EngineCatalogue[Any]
    reply: Reply
    ask: Callable[[Any, Sequence[str]], Any]
    text: Callable[[Asked], str]
    too_long: str
    changes: tuple[dict[str, Any], ...]
    same: Mapping[str, Any] = MappingProxyType({})


EMBEDDER = Role(
    table="embedders",
    catalogue=EMBEDDERS,
    reply=computed(openai_embeddings),
    ask=lambda embedder, texts: embedder.compare([Embed(sentences=tuple(texts))]),
    text=lambda asked: str(asked.body["input"][0]),
    too_long="truncate = true",
    changes=({"dimensions": 8}, {"query_prefix": "query: "}, {"text_prefix": "query: "}),
    same=MappingProxyType({"encoding": "base64"}),
)
RATER = Role(
    table="raters",
    catalogue=RATERS,
    reply=computed(reranked),
    ask=lambda rater, texts: rater.rate([Rate(by="duplicate", text=each, others=("Who ?",)) for each in texts]),
    text=lambda asked: str(asked.body["query"]),
    too_long="truncate_prompt_tokens = -1",
    changes=({"api": "tei", "raw_scores": True},),
)


@pytest.fixture(params=[EMBEDDER, RATER], ids=["embedder", "rater"])
def role(request: pytest.FixtureRequest) -> Role:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def opened(role: Role, tmp_path: Path, served: Served) -> Iterator[Make]:
    """Opens the server in this role; fields are those of its table."""
    served.replies = [role.reply]
    with role_opener(role.catalogue, role.table, tmp_path, served.url) as opener:
        yield opener


def test_no_more_requests_are_under_way_than_the_table_says(
    role: Role, opened: Make, served: Served, eventually: Eventually
) -> None:
    go = threading.Event()
    served.replies = [held(go, role.reply)]
    client, results = opened(batch_size=1, in_flight=3), []
    thread = threading.Thread(target=lambda: results.append(role.ask(client, "abcdefgh")))
    thread.start()
    eventually(lambda: len(served.asked) == 3, "three requests are under way")
    go.set()
    thread.join(60)
    assert len(served.asked) == 8
    served.replies = [role.reply]
    assert results == [role.ask(opened(), "abcdefgh")]


def test_an_answer_without_end_is_cut_off(
    role: Role, opened: Make, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotrail.engines.language_models.served.client.MAX_STREAM_BYTES", 2**20)
    served.replies = [verbatim(b" " * 2**21)]
    with pytest.raises(StepError, match="the server wrote more than 1 MiB"):
        role.ask(opened(), "a")


Refusal = tuple[int, Any, type[Exception], str]
REFUSALS: list[Refusal] = [
    (400, {"message": "input cannot be an empty string"}, StepError, "empty string"),
    (401, {"message": f"Incorrect API key: {KEY}"}, BlockedError, "set the environment variable A_KEY"),
    (402, {"message": "Pay"}, QuotaError, "used up"),
    (429, {"code": "insufficient_quota", "message": "No more"}, QuotaError, "used up"),
    (404, {"message": "The model `m` does not exist"}, StepError, "does not exist"),
    (413, "`inputs` must have less than 512 tokens", StepError, "less than 512"),
    (302, {}, BlockedError, "a redirect"),
    (500, {"message": f"oh {KEY}"}, TransientStepError, "500: oh"),
    (501, {"message": f"no such route {KEY}"}, TransientStepError, "no such route"),
    (502, {"message": f"loading {KEY}"}, UnavailableError, "loading"),
    (503, {"message": f"loading {KEY}"}, UnavailableError, "loading"),
]


def test_a_refusal_says_what_to_do_and_never_the_key(
    role: Role, opened: Make, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    monkeypatch.setattr("cotrail.engines.language_models.served.client._BACKOFF", lambda _: 0.01)
    too_long = {"message": "This model's maximum context length is 512 tokens"}
    refusals: list[Refusal] = [*REFUSALS, (400, too_long, PromptTooLongError, role.too_long)]
    for status, error, kind, said in refusals:
        served.replies = [answer(status, {"error": error})]
        with pytest.raises(kind, match=said) as caught:
            role.ask(opened(key_variable="A_KEY"), "a")
        assert type(caught.value) is kind, status
        assert KEY not in str(caught.value)


def test_an_own_server_that_is_busy_is_asked_again(role: Role, opened: Make, served: Served) -> None:
    expected = role.ask(opened(), "a")
    served.replies = [answer(429, {}, {"Retry-After": "0.01"}), role.reply]
    assert role.ask(opened(), "a") == expected
    assert len(served.asked) == 3


@pytest.mark.parametrize("status", [429, 529])
def test_an_account_that_is_refused_leaves_its_provider_alone_and_what_was_answered_is_kept(
    role: Role, opened: Make, served: Served, status: int
) -> None:
    client = opened(account="acme", batch_size=1, in_flight=1)
    served.replies = [role.reply, answer(status, {"error": {"message": "slow"}}, {"Retry-After": "90"})]
    with pytest.raises(BusyError) as caught:
        role.ask(client, "abc")
    assert caught.value.seconds == 90
    assert [role.text(each) for each in served.asked] == ["a", "b"]
    assert role.ask(client, "a")
    with pytest.raises(BusyError):
        role.ask(client, "b")
    assert len(served.asked) == 2


def test_a_key_that_is_not_set_blocks(opened: Make) -> None:
    with pytest.raises(BlockedError, match="the environment variable A_KEY holds no key"):
        opened(key_variable="A_KEY")


def test_an_interrupt_ends_what_is_under_way_and_what_comes_later(
    role: Role, opened: Make, served: Served, eventually: Eventually
) -> None:
    go, raised = threading.Event(), []
    served.replies = [held(go, role.reply)]
    client = opened(batch_size=1)

    def ask() -> None:
        with pytest.raises(Interrupted) as caught:
            role.ask(client, "abcd")
        raised.append(caught.value)

    thread = threading.Thread(target=ask)
    thread.start()
    eventually(lambda: len(served.asked) == 4, "all requests are under way")
    client.interrupt()
    thread.join(60)
    go.set()
    assert len(raised) == 1
    with pytest.raises(Interrupted):
        role.ask(client, ["later"])


def test_the_identity_is_what_decides_the_numbers_and_not_where_they_come_from(role: Role, tmp_path: Path) -> None:
    def named(url: str = "http://a/v1", **fields: Any) -> str:
        return found_role(role.catalogue, role.table, tmp_path, url, **fields).identity()

    usual = named()
    assert usual.startswith("mine@")
    opened = found_role(role.catalogue, role.table, tmp_path, "http://a/v1").open("fast")
    assert usual == opened.identity  # type: ignore[attr-defined, unused-ignore]
    same: dict[str, Any] = {"in_flight": 3, "timeout_seconds": 1.0, "batch_size": 7, "account": "acme", **role.same}
    assert usual == named("https://elsewhere/v1", key_variable="PATH", limits={"requests": 5}, **same)
    changes: list[dict[str, Any]] = [
        {"model": "other"},
        {"revision": "2"},
        {"extra": {"truncate": True}},
        {"api": "tei"},
        *role.changes,
    ]
    assert len({usual, *(named(**each) for each in changes)}) == 1 + len(changes)


def test_a_server_promises_no_deterministic_profile(role: Role, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mine is behind a server.*take the profile fast"):
        found_role(role.catalogue, role.table, tmp_path, "http://a/v1").open("deterministic")
