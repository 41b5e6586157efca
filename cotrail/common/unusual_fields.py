"""Fields of structs that aren't at their defaults, and structs without the others."""

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct


def unusual(value: Struct, *names: str) -> dict[str, Any]:
    """Those of the fields that aren't at their defaults; fields that the value lacks are left out.

    Fields that came later are written down this way only, which leaves older fingerprints and requests as they are.
    """
    unusual = {}
    for name, default in _defaults(type(value), names):
        if (given := getattr(value, name)) != default:
            unusual[name] = given
    return unusual


def without_unused(value: Struct, *later: str) -> dict[str, Any]:
    """The value as JSON; of the fields that came later, only those that aren't at their defaults."""
    unused = set(later).difference(unusual(value, *later))
    return {name: written for name, written in msgspec.to_builtins(value).items() if name not in unused}


@cache
def _defaults(of: type[Struct], names: tuple[str, ...]) -> tuple[tuple[str, object], ...]:
    defaults = {field.name: _default(field) for field in msgspec.structs.fields(of)}
    return tuple((name, defaults[name]) for name in names if name in defaults)


def _default(field: msgspec.structs.FieldInfo) -> object:
    factory = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()
