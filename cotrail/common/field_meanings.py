"""Meanings of a struct's fields: the docstring that stands below each of them in its class."""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from msgspec import Struct


def field_meanings(of: type[Struct]) -> dict[str, str]:
    """The meanings by field, of the class and those that it derives from; fields without one are left out.

    A class whose source can't be read, such as one typed at a prompt, has none.
    """
    meanings: dict[str, str] = {}
    for cls in reversed(of.__mro__):
        if issubclass(cls, Struct) and cls is not Struct:
            meanings |= _classes_of(cls.__module__).get(cls.__qualname__, {})
    return meanings


@cache
def _classes_of(module: str) -> dict[str, dict[str, str]]:
    """The meanings in a module's classes, by class and field."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    return {node.name: dict(_documented(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _documented(cls: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(cls.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split()).removesuffix(".")
