"""A route: a function with the method and the path under which a server offers it, and the types of its parameters."""

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, update_wrapper
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct

P = ParamSpec("P")
R = TypeVar("R")

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

HERE = "here"
"""Marks a parameter that stays in the process, such as a callback that reports progress: `Annotated[T, HERE]`."""


class Route(Generic[P, R]):
    """A function with its method and its path, in which names of parameters stand in braces."""

    def __init__(self, function: Callable[P, R], method: Method, path: str) -> None:
        update_wrapper(self, function)
        self.function = function
        self.method: Method = method
        self.path = path

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.function(*args, **kwargs)

    @property
    def name(self) -> str:
        """Its name: that of its module and its function."""
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Its parameters, their annotations resolved, without those that stay in the process."""
        hints = get_type_hints(self.function, include_extras=True)
        every = inspect.signature(self.function).parameters
        sent = {name: each.replace(annotation=hints[name]) for name, each in every.items() if not _is_here(hints[name])}
        return MappingProxyType(sent)

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """The names of the parameters that stand in its path."""
        return tuple(name for name in self.parameters if f"{{{name}}}" in self.path)

    @cached_property
    def beside_path(self) -> tuple[str, ...]:
        """The names of the others."""
        return tuple(name for name in self.parameters if name not in self.in_path)

    @property
    def takes_body(self) -> bool:
        """Whether what isn't in the path stands in a body, rather than in the query."""
        return self.method in ("POST", "PUT", "PATCH")

    @cached_property
    def whole_body(self) -> str | None:
        """The name of the parameter that is the whole body: the only one, where it is a record."""
        [*names] = self.beside_path
        sent = self.takes_body and len(names) == 1
        of = self.parameters[names[0]].annotation if sent else None
        return names[0] if isinstance(of, type) and issubclass(of, Struct) else None

    @property
    def has_body(self) -> bool:
        """Whether the others are sent as a JSON object."""
        return self.takes_body and bool(self.beside_path)


def _is_here(annotation: Any) -> bool:
    return get_origin(annotation) is Annotated and HERE in get_args(annotation)[1:]
