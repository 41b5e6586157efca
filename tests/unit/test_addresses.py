"""An address is read as every library reads it, or refused; what is secret in it shows nowhere."""

from urllib.parse import quote, urlsplit

import pytest
from elastic_transport.client_utils import url_to_node_config
from hypothesis import assume, given
from hypothesis import strategies as st
from kombu.utils.url import url_to_parts
from sqlalchemy import make_url

from cotrail.common.server_addresses import read_address
from cotrail.engines.retrieval.search_server import check_node
from tests.cases import each_case

PASSWORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=1) | st.text(
    "/@:#?%[]az19 ,;", min_size=1
)
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:")


@given(PASSWORDS)
def test_an_encoded_password_is_read_by_all_in_the_same_way(password: str) -> None:
    url = f"http://bob:{quote(password, safe='')}@host:9200/path"
    address = read_address(url)
    assert (address.user, address.password, address.host, address.port) == ("bob", password, "host", 9200)
    parts, made, node = url_to_parts(url), make_url(url), url_to_node_config(url)
    assert (parts.hostname, parts.username, parts.password) == ("host", "bob", password)
    assert (made.host, made.username, made.password) == ("host", "bob", password)
    assert (node.host, node.port) == ("host", 9200)


@given(
    PASSWORDS,
    st.sampled_from(["http://bob:{}@host:9200", "redis://:{}@host:6379/0", "postgresql://bob:{}@host/db?a=b"]),
)
def test_a_password_as_it_is_is_read_by_all_in_the_same_way_or_refused(password: str, url: str) -> None:
    raw = url.format(password)
    try:
        address = read_address(raw)
    except ValueError:
        assert not set(password) <= PLAIN
        return
    parts, made = url_to_parts(raw), make_url(raw)
    assert address.host == parts.hostname == made.host == urlsplit(raw).hostname == "host"
    assert address.password == parts.password == made.password


@given(st.text("/@:#?%[] <>", min_size=1), st.text("abc19", min_size=4))
def test_nothing_of_what_is_refused_is_quoted(hostile: str, word: str) -> None:
    assume("%" not in hostile)
    for password in (f"{word}{hostile}{word}x", f"{hostile}{word}x"):
        if set(password) <= PLAIN:
            continue
        with pytest.raises(ValueError, match="address") as refused:
            read_address(f"http://bob:{password}@host:9200")
        assert f"{word}x" not in f"{refused.value!r}"


@each_case(
    "url",
    [
        "",
        "host",
        "host:9200",
        "bob:secret@host",
        "//bob:secret@host",
        "http:/host",
        "http://host:port",
        "http://host:99999",
        "http://host:0",
        "http://:9200",
        "http://a@b@host",
        "http://ho st",
        "http://host\n",
        "http://host/#part",
        "http://host/a@b",
        "http://host/?a=b@c",
        "http://bob:12/secret@host",
        "http://bob:12?secret@host",
        "http://bob:12#secret@host",
        "http://bob:%zz@host",
        "http://[::1",
        "HTTP//host",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^its? "):
        read_address(url)


@each_case(
    ("url", "shown", "secrets"),
    [
        ("https://bob:s3cret@host:9200/a", "https://host:9200/a", ("s3cret", "bob:s3cret")),
        ("redis://:s%2Fcret@host/0", "redis://host/0", ("s/cret", ":s/cret")),
        ("redis+socket:///run/redis.sock", "redis+socket:///run/redis.sock", ()),
        ("postgresql://postgres@/trail?host=%2Frun&port=5432", "postgresql:///trail", ()),
        ("postgresql://host/db?user=bob&password=p%40ss&connect_timeout=10", "postgresql://host/db", ("p@ss",)),
        ("http://[::1]:9200", "http://[::1]:9200", ()),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str, secrets: tuple[str, ...]) -> None:
    address = read_address(url)
    assert str(address) == repr(address) == shown
    assert address.secrets == secrets


def test_a_scheme_may_be_asked_for() -> None:
    with pytest.raises(ValueError, match="http:// or https://"):
        read_address("ftp://host", ("http", "https"))


@each_case("url", ["http://token@host:9200", "http://host?a=b", "http:///path", "redis://host"])
def test_a_search_server_is_reached_over_http_by_user_and_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"it |must") as refused:
        check_node(url)
    assert "token" not in str(refused.value)
