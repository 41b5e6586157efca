"""Calls of tools, as systems read and number them."""

from msgspec import Struct

from cotrail.core.calls import Call, numbered
from tests.cases import each_case


class Page(Struct, frozen=True):
    title: str
    count: int = 1


@each_case(
    ("arguments", "read"),
    [
        ('{"title": "Sild"}', Page("Sild")),
        ('{"title": "Sild", "count": 3, "why": "so"}', Page("Sild", 3)),
        ('{"title": 3}', None),
        ("{}", None),
        ('{"title": "Si', None),
        ("", None),
        (r'{"title": "a\u0000\u0000b"}', Page("a\ufffd\ufffdb")),
        (r'{"title": "a\\u0000b"}', Page(r"a\u0000b")),
        (r'{"title": "a\\\u0000b"}', Page("a\\\ufffdb")),
        (r'{"title": "\ud800"}', None),
        ('{"title": "Sild", "x": ' + "[" * 100_000 + "]" * 100_000 + "}", None),
    ],
)
def test_arguments_are_read_as_a_type_or_not_at_all(arguments: str, read: Page | None) -> None:
    assert Call(name="open", arguments=arguments).read(Page) == read


def test_calls_are_numbered_by_their_turn_whatever_the_server_calls_them() -> None:
    calls = [Call(name=name, arguments="{}", id="call_x7") for name in ("open", "search")]
    assert [(call.name, call.id) for call in numbered(calls, 2)] == [("open", "2.0"), ("search", "2.1")]
