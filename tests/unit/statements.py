"""The statements of a module."""

import ast
from collections import deque
from collections.abc import Iterator


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The module and all statements in it, in the order of `ast.walk`, which looks into expressions too."""
    left: deque[ast.AST] = deque([tree])
    while left:
        node = left.popleft()
        yield node
        inner = (each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr))
        left.extend(inner)
