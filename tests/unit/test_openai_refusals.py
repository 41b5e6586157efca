import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from cotrail.engines.language_models.endpoint import Endpoint, Omitted
from cotrail.engines.language_models.served.pacing import seconds_to_wait
from cotrail.engines.language_models.served.refusals import Reported, reported_in, setting_for, step_error
from cotrail.errors import (
    BlockedError,
    BusyError,
    PromptTooLongError,
    QuotaError,
    StepError,
    TransientStepError,
    UnavailableError,
)
from tests.cases import each_case

ENDPOINT = Endpoint(url="https://host/v1", model="m", context=100)


@each_case(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0),
        ("7", 7),
        ("1.5", 1.5),
        ("-3", 0),
        ("inf", None),
        ("nan", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_time_to_wait_is_read(value: str | None, seconds: float | None) -> None:
    assert seconds_to_wait(value) == seconds


def test_a_date_to_wait_for_is_read() -> None:
    later = datetime.now(UTC) + timedelta(seconds=90)
    assert 80 < (seconds_to_wait(format_datetime(later, usegmt=True)) or 0) <= 90
    assert seconds_to_wait("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert seconds_to_wait("Wed, 21 Oct 2015 07:28:00 -0000") == 0


@given(st.text())
def test_whatever_is_said_about_waiting_is_survived(value: str) -> None:
    assert (seconds_to_wait(value) or 0) >= 0


@each_case(
    ("status", "kind"),
    [
        (301, BlockedError),
        (400, StepError),
        (401, BlockedError),
        (403, BlockedError),
        (404, StepError),
        (408, TransientStepError),
        (422, StepError),
        (429, BusyError),
        (529, BusyError),
        (500, TransientStepError),
        (502, UnavailableError),
        (503, UnavailableError),
        (504, UnavailableError),
    ],
)
def test_a_status_decides_whether_another_try_may_help(status: int, kind: type[Exception]) -> None:
    assert type(step_error(ENDPOINT, status, "no")) is kind


def google(quota: str = "", delay: str = "", reason: str = "", **error: Any) -> dict[str, Any]:
    details: list[dict[str, Any]] = [{"@type": "type.googleapis.com/google.rpc.Help", "links": []}]
    details += [{"reason": reason, "domain": "googleapis.com"}] if reason else []
    details += [{"violations": [{"quotaId": quota, "quotaValue": "20"}]}] if quota else []
    details += [{"retryDelay": delay}] if delay else []
    return {"error": {"code": 429, "message": "no", "status": "RESOURCE_EXHAUSTED", "details": details} | error}


CREDIT = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to purchase credits."


@each_case(
    ("status", "content"),
    [
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message": CREDIT}}),
        (429, {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}),
        (429, google("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "37s")),
        (429, [google("GenerateRequestsPerDayPerProjectPerModel-FreeTier")]),
        (402, {"error": {"message": "Insufficient Balance"}}),
        (403, {"error": "Your team has used all available credits or reached its monthly spending limit."}),
    ],
)
def test_a_used_up_account_blocks_with_its_cause(status: int, content: object) -> None:
    said = reported_in(json.dumps(content).encode())
    error = step_error(ENDPOINT, status, said)
    assert type(error) is QuotaError
    assert said.message in str(error)
    assert "cotrail resume RUN" in str(error)


@each_case(
    "content",
    [
        google(code=400, status="INVALID_ARGUMENT", message="API key not valid. Please pass a valid API key."),
        google(code=400, status="INVALID_ARGUMENT", reason="API_KEY_INVALID"),
        [google(code=400, message="API key expired. Please renew the API key.")],
        {"code": "The request is invalid", "error": "Incorrect API key provided: sk***."},
    ],
)
def test_a_bad_key_blocks_whatever_its_status(content: object) -> None:
    error = step_error(ENDPOINT, 400, reported_in(json.dumps(content).encode()))
    assert type(error) is BlockedError
    assert "key_variable" in str(error)


@each_case(
    ("delay", "seconds"),
    [("37s", 37), ("0.5s", 0.5), ("9999999s", 3600), ("0s", None), ("-3s", None), ("soon", None), (3, None)],
)
def test_the_pause_that_google_asks_for_is_read(delay: Any, seconds: float | None) -> None:
    said = reported_in(json.dumps(google("GenerateRequestsPerMinutePerProjectPerModel", delay)).encode())
    error = step_error(ENDPOINT, 429, said)
    assert isinstance(error, BusyError)
    assert error.seconds == seconds
    assert step_error(ENDPOINT, 429, said, 3.0).seconds == 3  # type: ignore[attr-defined]


@each_case("details", [3, [], [3, None], [{"violations": 3}], [{"violations": [3, {"quotaId": 3}]}], {"a": 1}])
def test_details_of_any_form_are_survived(details: object) -> None:
    assert reported_in(json.dumps({"error": {"message": "no", "details": details}}).encode()) == Reported("no")


@each_case(
    "message",
    [
        "request (1201 tokens) exceeds the available context size (512 tokens), try increasing it",
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "context_length_exceeded",
    ],
)
@each_case("param", ["", "messages", "max_tokens"])
def test_a_prompt_that_is_too_long_is_told_from_other_bad_requests(message: str, param: str) -> None:
    error = step_error(ENDPOINT, 400, Reported(message, param=param))
    assert type(error) is PromptTooLongError
    assert message in str(error)


@each_case(
    ("content", "setting"),
    [
        ({"error": {"message": "no", "param": "stop", "code": None}}, '"stop" to omits'),
        ({"error": {"message": "no", "param": "top_logprobs", "code": 400}}, '"logprobs" to omits'),
        ({"error": {"message": "no", "param": "max_tokens", "code": "unsupported_parameter"}}, "max_completion_tokens"),
        ({"error": {"message": "no", "param": "max_completion_tokens"}}, 'limit_field = "max_tokens"'),
        ({"error": {"message": "no", "param": "reasoning.effort"}}, "another effort"),
        ({"error": {"message": "no", "param": "response_format"}}, '"structure" to without'),
        ({"error": {"message": "no", "param": "verbosity", "code": "unsupported_parameter"}}, "correct its table"),
        ({"error": {"message": "temperature: Extra inputs are not permitted"}}, '"temperature" to omits'),
        ({"error": {"message": "`temperature` and `top_p` cannot both be specified"}}, '"temperature" to omits'),
        ({"code": "invalid", "error": "Argument not supported on this model: stop"}, '"stop" to omits'),
        ({"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "no"}]}, '"seed" to omits'),
        ({"message": {"detail": [{"loc": ["body", "seed"], "msg": "no"}]}, "param": None}, '"seed" to omits'),
    ],
)
@each_case("status", [400, 422])
def test_a_field_that_a_server_refuses_blocks_with_the_setting_to_make(
    status: int, content: object, setting: str
) -> None:
    error = step_error(ENDPOINT, status, reported_in(json.dumps(content).encode()))
    assert type(error) is BlockedError
    assert setting in str(error)


@each_case(
    "error",
    [
        {"message": "Invalid value", "param": "messages", "code": "invalid_value"},
        {"message": "Please stop. That is unknown."},
        {"message": "'messages[0].content' isn't supported"},
    ],
)
def test_a_request_that_is_refused_for_what_it_asks_fails_its_step(error: dict[str, str]) -> None:
    assert type(step_error(ENDPOINT, 400, reported_in(json.dumps({"error": error}).encode()))) is StepError


def test_without_a_key_the_field_that_names_one_is_pointed_at() -> None:
    assert "key_variable" in str(step_error(ENDPOINT, 401, "who are you"))


@each_case(
    ("content", "message"),
    [
        ({"error": {"message": "no", "code": 400}}, "no"),
        ({"error": "no"}, "no"),
        ({"object": "error", "message": "no"}, "no"),
        ({"detail": [{"loc": ["body"], "msg": "no"}]}, '[{"loc":["body"],"msg":"no"}]'),
        ({"error": {"code": 1}}, '{"code":1}'),
        ({"error": None}, '{"error":null}'),
        ("no", "no"),
        (None, "null"),
    ],
)
def test_the_message_of_an_answer_is_found(content: object, message: str) -> None:
    assert reported_in(json.dumps(content).encode()).message == message


@given(st.binary())
def test_an_answer_of_any_bytes_has_a_message(body: bytes) -> None:
    assert reported_in(body + b"?").message
    assert reported_in(b" ").message == "nothing further"


def test_every_field_that_can_be_left_out_is_known_to_be_refused() -> None:
    assert all(f'add "{name}" to omits' in setting_for(name) for name in get_args(Omitted))
