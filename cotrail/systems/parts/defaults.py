"""Settings with other defaults, as former versions of systems had them."""

from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

SettingsT = TypeVar("SettingsT", bound=Struct)


def with_defaults(settings: type[SettingsT], **defaults: Any) -> type[SettingsT]:
    """The settings with these defaults; a default that is settings itself brings its own type, and so its defaults."""
    types = {field.name: field.type for field in msgspec.structs.fields(settings)}
    fields = [
        (name, type(value) if isinstance(value, Struct) else types[name], value) for name, value in defaults.items()
    ]
    made = msgspec.defstruct(
        settings.__name__, fields, bases=(settings,), frozen=True, kw_only=True, forbid_unknown_fields=True
    )
    return cast("type[SettingsT]", made)
