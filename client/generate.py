"""`python -m cotrail.client.generate > client/groups.py`: the methods of the clients, written from the operations."""

import inspect
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import groupby
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cotrail.services.operations.operation import Operation
from cotrail.services.operations.registry import OPERATIONS

HEAD = '''"""The operations by their groups, for clients; written by `python -m cotrail.client.generate`."""

# ruff: noqa: A002, E501, I001
# fmt: off

'''


class Writing:
    """Writes types and notes what has to be imported for them."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    def written(self, kind: Any) -> str:
        """A type as source code."""
        origin, inner = get_origin(kind), get_args(kind)
        if kind in (None, NoneType):
            return "None"
        if kind is Any:
            return self._imported("typing", "Any")
        if origin is Annotated:
            return self.written(inner[0])
        if origin in (Union, UnionType):
            return " | ".join(map(self.written, inner))
        if origin is Literal:
            return f"{self._imported('typing', 'Literal')}[{', '.join(map(repr, inner))}]"
        if origin is not None:
            parts = ["..." if each is Ellipsis else self.written(each) for each in inner]
            return f"{self.written(origin)}[{', '.join(parts)}]"
        return str(kind.__name__) if kind.__module__ == "builtins" else self._imported(kind.__module__, kind.__name__)

    def streamed(self, operation: Operation[Any, Any]) -> str:
        """The type of each piece or record of a stream."""
        return self.written(get_args(operation.answer_type)[0])

    def default(self, value: Any) -> str:
        """A default as source code."""
        return f"{self.written(type(value))}.{value.name}" if isinstance(value, Enum) else repr(value)

    def imports(self) -> Iterator[str]:
        """The lines that import what was written."""
        for (module, name), known in sorted(self._names.items()):
            yield f"from {module} import {name}{'' if name == known else f' as {known}'}"

    def _imported(self, module: str, name: str) -> str:
        """The name under which something is known here: where two have the same one, with that of its module."""
        if (module, name) not in self._names:
            taken = name in self._names.values()
            prefix = module.rpartition(".")[2].title().replace("_", "") if taken else ""
            self._names[module, name] = f"{prefix}{name}"
        return self._names[module, name]


def source() -> str:
    """The source code of `cotrail.client.groups`."""
    writing = Writing()
    every = sorted(OPERATIONS.values(), key=_group)
    groups = [(name, list(operations)) for name, operations in groupby(every, key=_group)]
    sync = [_class(_title(name), "Group", map(_method(writing), operations)) for name, operations in groups]
    waiting = [
        _class(f"Async{_title(name)}", "AsyncGroup", map(_awaited(writing), operations)) for name, operations in groups
    ]
    names = [name for name, _ in groups]
    every_one = [_all("Groups", "", "RemoteDoor", names), _all("AsyncGroups", "Async", "RemoteDoor", names)]
    own = ["from cotrail.client.asking import AsyncGroup, Group", "from cotrail.client.door import RemoteDoor"]
    iterators = ["from collections.abc import AsyncIterator"]
    imports = "\n".join([*iterators, *own, *writing.imports()])
    return f"{HEAD}{imports}\n\n\n" + "\n\n\n".join([*sync, *waiting, *every_one]) + "\n"


def _group(operation: Operation[Any, Any]) -> str:
    return operation.name.partition(".")[0]


def _title(group: str) -> str:
    return group.title().replace("_", "")


def _class(name: str, base: str, methods: Iterator[str]) -> str:
    said = f'    """Operations on {name.removeprefix("Async").lower()}."""'
    return f"class {name}({base}):\n{said}\n\n" + "\n\n".join(methods)


def _all(name: str, prefix: str, door: str, groups: list[str]) -> str:
    lines = [f"        self.{group} = {prefix}{_title(group)}(door)" for group in groups]
    said = f'    """All groups; door: carries their operations out."""\n\n    def __init__(self, door: {door}) -> None:'
    return f"class {name}:\n{said}\n" + "\n".join(lines)


def _method(writing: Writing) -> Callable[[Operation[Any, Any]], str]:
    def method(operation: Operation[Any, Any]) -> str:
        answer = writing.written(operation.answer_type)
        asked = f"        answer: {answer} = self._ask({_given(operation)})\n        return answer"
        return f"    def {_signature(writing, operation)} -> {answer}:\n{_said(operation)}\n{asked}"

    return method


def _awaited(writing: Writing) -> Callable[[Operation[Any, Any]], str]:
    def method(operation: Operation[Any, Any]) -> str:
        if operation.answers != "record":
            answer = f"AsyncIterator[{writing.streamed(operation)}]"
            asked = f"        return self._follow({_given(operation)})"
            return f"    def {_signature(writing, operation)} -> {answer}:\n{_said(operation)}\n{asked}"
        answer = writing.written(operation.answer_type)
        asked = f"        answer: {answer} = await self._ask({_given(operation)})\n        return answer"
        return f"    async def {_signature(writing, operation)} -> {answer}:\n{_said(operation)}\n{asked}"

    return method


def _signature(writing: Writing, operation: Operation[Any, Any]) -> str:
    written, star = ["self"], False
    for name, parameter in operation.parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            written, star = [*written, "*"], True
        default = "" if parameter.default is parameter.empty else f" = {writing.default(parameter.default)}"
        written.append(f"{name}: {writing.written(parameter.annotation)}{default}")
    return f"{operation.function.__name__}({', '.join(written)})"


def _given(operation: Operation[Any, Any]) -> str:
    given = ", ".join(f'"{name}": {name}' for name in operation.parameters)
    return f'"{operation.name}", {{{given}}}'


def _said(operation: Operation[Any, Any]) -> str:
    lines = (inspect.getdoc(operation.function) or "").splitlines()
    if len(lines) == 1:
        return f'        """{lines[0]}"""'
    return '        """' + "\n".join(f"        {line}".rstrip() for line in lines).strip() + '\n        """'


if __name__ == "__main__":
    sys.stdout.write(source())
