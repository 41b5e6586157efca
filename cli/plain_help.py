"""Help as people read it: typer names the Python type of every flag and argument, which says nothing to them."""

from typing import Any

from typer.core import TyperArgument, TyperOption

_type_of_option = TyperOption.display_type_rich


def leave_out_types() -> None:
    """Has all help leave out `<bool>` behind flags and `<str>` behind arguments: typer has no setting for that."""
    setattr(TyperOption, "display_type_rich", _type_of_value)  # noqa: B010 - mypy lets no method be assigned
    setattr(TyperArgument, "display_type_rich", lambda *_, **__: None)  # noqa: B010


def _type_of_value(option: TyperOption, ctx: Any) -> str | None:
    return None if option.is_flag else _type_of_option(option, ctx)
