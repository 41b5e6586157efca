"""Secrets are hidden in every form in which a server may say them again."""

import html
import json
import logging
from base64 import b64encode
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.common.log_formatting import REPLACEMENT, Secrets, hide_in_logs
from tests.cases import each_case

HOSTILE = "s3/cr@t:#?%&<\"'é"
FORMS = (
    HOSTILE,
    quote(HOSTILE),
    quote(HOSTILE, safe=""),
    quote(HOSTILE, safe="").lower(),
    quote_plus(HOSTILE),
    html.escape(HOSTILE),
    json.dumps(HOSTILE)[1:-1],
    b64encode(HOSTILE.encode()).decode(),
)


@each_case("form", FORMS)
def test_a_secret_is_hidden_in_every_form(form: str) -> None:
    assert Secrets([HOSTILE]).hidden(f"before {form} behind") == f"before {REPLACEMENT} behind"


@given(st.lists(st.text(min_size=1)), st.text())
def test_no_secret_is_left(secrets: list[str], text: str) -> None:
    hidden = Secrets(secrets).hidden(text + "".join(secrets))
    assert not [each for each in secrets if each in "".join(hidden.split(REPLACEMENT)) and each not in REPLACEMENT]


def test_the_longer_of_two_secrets_is_hidden_whole() -> None:
    assert Secrets(["pass", "password"]).hidden("password, pass") == f"{REPLACEMENT}, {REPLACEMENT}"


def test_without_secrets_nothing_is_hidden() -> None:
    for none in (Secrets(), Secrets([""])):
        assert not none
        assert none.hidden("text") == "text"


@pytest.fixture
def hiding() -> object:
    make = logging.getLogRecordFactory()
    hide_in_logs(Secrets([HOSTILE]))
    yield
    logging.setLogRecordFactory(make)


@pytest.mark.usefixtures("hiding")
def test_logs_and_their_tracebacks_are_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("cotrail.test")
    try:
        raise ConnectionError(f"unknown command AUTH, with args beginning with: {HOSTILE}")
    except ConnectionError as error:
        logger.exception("lost: %s", error)
        logger.warning("by name: %(secret)s", {"secret": HOSTILE})
        logger.warning("harmless: %d of %s", 3, "x")
    assert HOSTILE not in caplog.text
    assert caplog.text.count(REPLACEMENT) == 3
    assert "harmless: 3 of x" in caplog.text
    assert "Traceback" in caplog.text


def test_where_there_are_no_secrets_logging_stays_as_it_is() -> None:
    make = logging.getLogRecordFactory()
    hide_in_logs(Secrets())
    assert logging.getLogRecordFactory() is make
