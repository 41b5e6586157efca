"""Limits of hosted models: refusals, pauses, and limits that processes share through Redis."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis

from cotrail.configuration.settings import Settings
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.core.ports.rate_limiter import Limits, Need
from cotrail.core.prompts import Prompt, user
from cotrail.engines.rate_limits import USED, Pool, leave, line_up, refused, reserve, settle, tell
from cotrail.errors import BlockedError, BusyError, QuotaError, StepError, TransientStepError, UnavailableError
from cotrail.tasks.engines import PREFIX, SharedLimiter
from cotrail.tasks.failures import Hold, Wait, verdict
from tests.integration.served import Served, answer, delta, streamed

Make = Callable[..., LanguageModel]

CHAT = Prompt(turns=(user("Who?"),))
SAID = [delta(content="Brenn."), delta("stop"), "[DONE]"]


def ask(model: LanguageModel) -> str:
    return model.generate(GenerationRequest(CHAT, "end", 50)).text


@pytest.fixture
def hosted(open_served: Make, served: Served) -> Make:
    return lambda **table: open_served(served.url, api="chat", thinks="no", account="acme", **table)


@pytest.mark.parametrize(
    "refusal",
    [
        answer(429, {"error": {"message": "slow"}}, {"retry-after-ms": "40"}),
        answer(
            529, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, {"Retry-After": "0.04"}
        ),
        answer(503, {"error": "busy"}, {"Retry-After": "0.04"}),
        answer(429, {}, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "40ms"}),
        answer(429, [{"error": {"code": 429, "message": "slow", "details": [{"retryDelay": "0.04s"}]}}]),
        streamed([{"error": {"message": "busy", "type": "overloaded_error"}}]),
        streamed([{"error": {"code": 429, "message": "busy", "details": [{"retryDelay": "0.04s"}]}}]),
    ],
    ids=["429", "529", "503", "reset", "in the body", "in the stream", "in the body of the stream"],
)
def test_whoever_is_refused_waits_and_asks_again(hosted: Make, served: Served, refusal: Any) -> None:
    served.replies = [refusal, streamed(SAID)]
    assert ask(hosted()) == "Brenn."
    assert len(served.generations) == 2


def test_a_long_pause_gives_the_step_back(hosted: Make, served: Served) -> None:
    served.replies = [answer(429, {"error": {"message": "slow"}}, {"Retry-After": "90"})]
    model = hosted()
    with pytest.raises(BusyError) as caught:
        ask(model)
    assert caught.value.seconds == 90
    # Nobody else of the account asks meanwhile.
    with pytest.raises(BusyError, match=r"pause|limits"):
        ask(model)
    assert len(served.generations) == 1
    assert verdict(caught.value, 0, 5) == Wait(90)
    assert isinstance(verdict(UnavailableError("away"), 0, 5), Hold)


@pytest.mark.parametrize(
    ("status", "error", "kind", "said"),
    [
        (429, {"code": "insufficient_quota", "message": "You exceeded your quota"}, QuotaError, "used up"),
        (402, {"message": "Pay"}, QuotaError, "used up"),
        (400, {"type": "invalid_request_error", "message": "Your credit balance is too low"}, QuotaError, "used up"),
        (400, {"status": "INVALID_ARGUMENT", "message": "API key not valid."}, BlockedError, "key_variable"),
        (400, {"type": "billing_error", "message": "Credit is low"}, QuotaError, "used up"),
        (403, {"message": "You are not allowed to request logprobs"}, BlockedError, '"logprobs" to omits'),
        (403, {"message": "Your input was flagged by the moderation"}, StepError, "flagged"),
        (403, {"message": "Invalid API key"}, BlockedError, "key_variable"),
        (
            400,
            {"code": "unsupported_parameter", "param": "max_tokens", "message": "Use 'max_completion_tokens'"},
            BlockedError,
            "limit_field",
        ),
        (400, {"code": "unsupported_value", "param": "temperature", "message": "Only 1"}, BlockedError, "omits"),
        (500, {"message": "oh"}, TransientStepError, "500"),
        (503, {"message": "down"}, UnavailableError, "503"),
    ],
)
def test_what_a_refusal_means(
    hosted: Make, served: Served, status: int, error: dict[str, str], kind: type[Exception], said: str
) -> None:
    served.replies = [answer(status, {"error": error})]
    with pytest.raises(kind, match=said) as caught:
        ask(hosted())
    assert type(caught.value) is kind
    assert len(served.generations) == 1


def test_the_pause_of_a_body_is_kept_to_as_that_of_a_header_is(hosted: Make, served: Served) -> None:
    served.replies = [answer(429, {"error": {"message": "slow", "details": [{"retryDelay": "90s"}]}})]
    with pytest.raises(BusyError) as caught:
        ask(hosted())
    assert caught.value.seconds == 90


def test_a_plan_that_allows_nothing_blocks_in_place_of_waiting(hosted: Make, served: Served) -> None:
    served.replies = [answer(429, {"message": "Rate limit exceeded"}, {"x-ratelimit-limit-req-minute": "0"})]
    with pytest.raises(QuotaError, match="Rate limit exceeded"):
        ask(hosted())
    assert len(served.generations) == 1


def test_an_own_server_whose_quota_is_used_up_is_not_asked_again(open_served: Make, served: Served) -> None:
    served.replies = [answer(429, {"error": {"code": "insufficient_quota", "message": "No more"}})]
    with pytest.raises(QuotaError):
        ask(open_served(served.url, api="chat"))
    assert len(served.generations) == 1


@pytest.mark.parametrize("header", ["x-ratelimit-limit-requests", "x-ratelimit-limit-req-minute"])
def test_requests_are_spaced_by_the_limit_that_headers_tell(hosted: Make, served: Served, header: str) -> None:
    told = {header: "600"}
    whole = {"choices": [{"message": {"content": "Brenn."}, "finish_reason": "stop"}]}
    served.replies = [answer(200, whole, told)]
    model = hosted(omits=("stream",))
    ask(model)
    began = time.monotonic()
    with ThreadPoolExecutor(11) as pool:
        assert set(pool.map(lambda _: ask(model), range(11))) == {"Brenn."}
    assert time.monotonic() - began >= 10 * 60 / 600


@pytest.fixture
def redis(servers: Settings) -> Iterator[Redis]:
    client = Redis.from_url(servers.broker.replace("redis+socket://", "unix://"))
    yield client
    client.close()


def test_processes_share_limits_through_redis(servers: Settings, redis: Redis) -> None:
    limits = Limits(requests=60, output_tokens=600)
    one, other = SharedLimiter(servers.broker), SharedLimiter(servers.broker)
    redis.delete(f"{PREFIX}shared/m")
    waits = [each.reserve("shared/m", Need(output_tokens=20), limits, 99) for each in (one, other, one, other)]
    assert waits == pytest.approx([0, 2 / USED, 4 / USED, 6 / USED], abs=0.5)
    other.settle("shared/m", Need(requests=0, output_tokens=-20), limits)
    assert one.reserve("shared/m", Need(), limits, 99) == pytest.approx(7 / USED, abs=0.5)
    one.refused("shared/m", 30.0)
    assert other.pause("shared/m") == pytest.approx(30, abs=0.5)
    redis.delete(f"{PREFIX}shared/m")


def test_the_script_does_as_the_pools_of_a_process(servers: Settings, redis: Redis) -> None:
    limits, unknown = Limits(requests=90, input_tokens=5000, tokens=9000), Limits()
    shared, pool, began = SharedLimiter(servers.broker), Pool(free=[0.0] * 4), time.monotonic()
    redis.delete(f"{PREFIX}same/m")
    for number in range(40):
        kind = unknown if number % 7 == 3 else limits
        need = Need(input_tokens=number * 31 % 170, output_tokens=number * 17 % 90)
        theirs = shared.reserve("same/m", need, kind, 20)
        ours = reserve(pool, time.monotonic() - began + 1000, need, kind, 20)
        assert theirs == pytest.approx(ours, abs=0.5)
        if number % 5 == 0:
            shared.settle("same/m", Need(requests=0, output_tokens=-40), limits)
            settle(pool, Need(requests=0, output_tokens=-40), limits)
        if number % 4 == 0:
            for _ in range(2):
                theirs = shared.leave("same/m", shared.plan("same/m"), limits)
                assert theirs == pytest.approx(leave(pool, time.monotonic() - began + 1000, pool.plan, limits), abs=0.5)
            theirs = shared.line_up("same/m", need, limits)
            assert theirs == pytest.approx(line_up(pool, time.monotonic() - began + 1000, need, limits), abs=0.5)
        if number == 25:
            shared.tell("same/m", Limits(requests=80), 0.0)
            tell(pool, time.monotonic() - began + 1000, Limits(requests=80), 0.0)
        if number in (20, 30):
            shared.refused("same/m", None)
            refused(pool, time.monotonic() - began + 1000, None)
    assert shared.plan("same/m") == pool.plan
    assert shared.pause("same/m") == pytest.approx(max(0, pool.paused - (time.monotonic() - began + 1000)), abs=0.5)
    redis.delete(f"{PREFIX}same/m")


def test_without_redis_a_process_keeps_to_limits_of_its_own() -> None:
    limiter = SharedLimiter("redis://127.0.0.1:1/0")
    assert [limiter.reserve("a/m", Need(), Limits(requests=60), 99) for _ in range(2)] == pytest.approx(
        [0, 1 / USED], abs=0.2
    )
    limiter.refused("a/m", 5.0)
    assert limiter.pause("a/m") == pytest.approx(5, abs=0.5)
