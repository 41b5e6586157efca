"""What requests for pages ask for: the arguments of a page, from its path and its query, or of an action, from a form.

What stands empty in a form counts as not given, and what a page doesn't know is left out: addresses come by mail.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from litestar import Request

from cotrail.api.requests import beside_type, fields_of, from_path, is_list, record_fields, typed, used
from cotrail.common.printable_text import storable
from cotrail.errors import InputError
from cotrail.services.operations.operation import Route

AnyRequest = Request[Any, Any, Any]

MOST_FIELDS = 1000


def wants_page(request: AnyRequest) -> bool:
    """Whether it comes from a browser that shows what is answered, rather than from a program."""
    path: str = request.scope["path"]
    return "text/html" in request.headers.get("Accept", "") and path != "/v1" and not path.startswith("/v1/")


def pairs_of(text: bytes) -> dict[str, list[str]]:
    """The values by name of a query or a form; raises InputError where they can't be read."""
    try:
        pairs = parse_qs(text.decode(), errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise InputError(f"the address or the form can't be read ({error}); go back and try again") from error
    if b"%00" in text or b"\0" in text:
        raise InputError("the address or the form holds a NUL character, which can't be stored; take it out")
    return {name: [storable(each) for each in values] for name, values in pairs.items()}


def page_arguments(page: Route[..., Any], path: Mapping[str, str], pairs: Mapping[str, list[str]]) -> dict[str, Any]:
    """The arguments that these give; raises InputError where they can't be used."""
    record = beside_type(page)
    values = {
        field.name: pairs[field.name] if is_list(field) else typed(pairs[field.name][-1], field.type)
        for field in record_fields(record)
        if field.name in pairs
    }
    value = used(record, values)
    return from_path(page, path) | ({page.whole_body: value} if page.whole_body else fields_of(value))
