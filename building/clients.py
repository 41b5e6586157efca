"""`python -m building.clients`: the modules of the clients that are written from the operations.

So clients need nothing of what carries operations out: neither the database nor the broker.
"""

import inspect
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import FieldInfo, fields

from cotrail.common.structs import field_meanings
from cotrail.services.library import named_files
from cotrail.services.operations.all_operations import OPERATIONS
from cotrail.services.operations.operation import Operation
from cotrail.services.runs.requests import described

Described = Operation[Any, Any]

FOLDER = Path(__file__).parents[1] / "cotrail" / "client"
"""Where they are written."""

RECORDS = "cotrail.client.records"

FACTS = ("method", "path", "in_path", "whole_body", "has_body", "keyed", "answers")
"""What a client has to know of an operation to ask for it, apart from the type of the answer."""

HEAD = '''"""{said}; written by `python -m building.clients`."""

# ruff: noqa
# fmt: off

'''


def sources() -> dict[str, str]:
    """The source code of each module, by the name of its file."""
    every = sorted(OPERATIONS.values(), key=_group)
    return {"records.py": _records(every), "groups.py": _groups(every)}


def write(folder: Path = FOLDER) -> None:
    """Write the modules that aren't there as they are to be, each at once: it may be read at the same time."""
    for name, source in sources().items():
        path = folder / name
        if path.is_file() and path.read_text("utf-8") == source:
            continue
        with TemporaryDirectory(dir=folder) as temporary:
            new = Path(temporary) / name
            new.write_text(source, "utf-8")
            new.replace(path)


# The records of operations, without what they do where they come from: `cotrail.client.records`.


def _records(operations: Iterable[Described]) -> str:
    """The source code of the module; ValueError where two records have one name."""
    writing, known = Writing(own=True), dict[str, type[Struct] | type[Enum]]()
    for operation in operations:
        for kind in (operation.answer_type, *(each.annotation for each in operation.parameters.values())):
            _collect(kind, known)
    classes = [
        _record(kind, writing) if issubclass(kind, Struct) else _enumeration(kind, writing) for kind in known.values()
    ]
    return writing.module("What operations are asked for and answer, for clients", classes)


def _collect(kind: Any, known: dict[str, type[Struct] | type[Enum]]) -> None:
    """Add the records in a type, each behind those that it needs."""
    for inner in get_args(kind):
        _collect(inner, known)
    if not is_record(kind) or known.get(kind.__name__) is kind:
        return
    if kind.__name__ in known:
        raise ValueError(f"{kind} has the name of {known[kind.__name__]}: rename one")
    for field in fields(kind) if issubclass(kind, Struct) else ():
        _collect(field.type, known)
    known[kind.__name__] = kind


def _enumeration(kind: type[Enum], writing: "Writing") -> str:
    base = writing.imported("enum", kind.__mro__[1].__name__)
    meanings = field_meanings(kind)
    lines = (line for each in kind for line in (f"{each.name} = {each.value!r}", *_meaning(meanings.get(each.name))))
    return _class(kind, base, lines)


def _record(kind: type[Struct], writing: "Writing") -> str:
    config = kind.__struct_config__
    renamed = {field.name: field.encode_name for field in fields(kind) if field.name != field.encode_name}
    options = {
        "tag": config.tag,
        "tag_field": config.tag_field,
        "rename": renamed,
        "omit_defaults": config.omit_defaults,
        "array_like": config.array_like,
    }
    given = (f"{name}={value!r}" for name, value in options.items() if value)
    files = (
        writing.imported(each.__module__, each.__name__)
        for each in kind.__mro__[1:]
        if each.__module__ == named_files.__name__
    )
    bases = [*files, writing.imported("msgspec", "Struct")]
    return _class(kind, ", ".join([*bases, "frozen=True", "kw_only=True", *given]), _fields(kind, writing))


def _fields(kind: type[Struct], writing: "Writing") -> Iterator[str]:
    meanings = field_meanings(kind)
    for field in fields(kind):
        yield f"{field.name}: {writing.written(field.type)}{writing.default(field)}"
        yield from _meaning(meanings.get(field.name) or described(kind, field).get("meaning"))


def _meaning(text: str | None) -> Iterator[str]:
    if text:
        yield f'"""{text.rstrip(".")}."""'


def _class(kind: type, heading: str, lines: Iterable[str]) -> str:
    body = "\n".join(f"    {line}".rstrip() for line in [*_said(kind), "", *lines])
    return f"class {kind.__name__}({heading}):\n{body.rstrip()}"


def _said(documented: object) -> list[str]:
    """The lines of a docstring."""
    lines = (inspect.getdoc(documented) or "").splitlines()
    return [f'"""{lines[0]}"""'] if len(lines) == 1 else [f'"""{lines[0]}', *lines[1:], '"""']


# The methods of the clients: `cotrail.client.groups`.


def _groups(operations: Iterable[Described]) -> str:
    """The source code of the module; operations: in the order of their groups."""
    writing, grouped = Writing(), {name: list(members) for name, members in groupby(operations, key=_group)}
    classes = []
    for prefix in ("", "Async"):
        transport = writing.imported("cotrail.client.transport", f"{prefix}RemoteTransport")
        for name, members in grouped.items():
            methods = (_method(each, writing, waits=bool(prefix)) for each in members)
            begins = _begin(
                f"{prefix}{_title(name)}",
                f"Operations on {_title(name).lower()}.",
                transport,
                ["_transport = transport"],
            )
            classes.append("\n\n".join([begins, *methods]))
        each = (f"{name} = {prefix}{_title(name)}(transport)" for name in grouped)
        classes.append(
            _begin(f"{prefix}Groups", "All groups; transport: carries their operations out.", transport, each)
        )
    return writing.module("The operations by their groups, for clients", classes)


def _group(operation: Described) -> str:
    return operation.name.partition(".")[0]


def _title(group: str) -> str:
    return group.title().replace("_", "")


def _begin(name: str, said: str, transport: str, assigned: Iterable[str]) -> str:
    """A class with its constructor; assigned: to its attributes."""
    lines = "\n".join(f"        self.{each}" for each in assigned)
    return f'class {name}:\n    """{said}"""\n\n    def __init__(self, transport: {transport}) -> None:\n{lines}'


def _method(operation: Described, writing: "Writing", *, waits: bool) -> str:
    """A method; waits: for a client whose methods are awaited, and whose streams are followed."""
    answer, begins, asks = writing.written(operation.answer_type), "def", "self._transport.carry_out"
    if waits and operation.answers != "record":
        [of] = get_args(operation.answer_type)
        answer = f"{writing.imported('collections.abc', 'AsyncIterator')}[{writing.written(of)}]"
        asks = "self._transport.follow"
    elif waits:
        begins, asks = "async def", f"await {asks}"
    given = ", ".join(f'"{name}": {name}' for name in operation.parameters)
    asked = f"answer: {answer} = {asks}({_facts(operation, writing)}, {{{given}}})"
    body = "\n".join(f"        {line}".rstrip() for line in [*_said(operation.function), asked, "return answer"])
    return f"    {begins} {operation.name.rpartition('.')[2]}({_parameters(operation, writing)}) -> {answer}:\n{body}"


def _facts(operation: Described, writing: "Writing") -> str:
    facts = [f"{name}={getattr(operation, name)!r}" for name in FACTS]
    answer = f"answer_type={writing.written(operation.answer_type)}"
    return f"{writing.imported('cotrail.client.calls', 'RemoteOperation')}({', '.join([*facts, answer])})"


def _parameters(operation: Described, writing: "Writing") -> str:
    written = ["self"]
    for name, parameter in operation.parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in written:
            written.append("*")
        default = "" if parameter.default is parameter.empty else f" = {writing.value(parameter.default)}"
        written.append(f"{name}: {writing.written(parameter.annotation)}{default}")
    return ", ".join(written)


# Types and values as source code, and what has to be imported for them.


class Writing:
    """Writes for one module, and notes what it has to import; own: the module has the records itself."""

    def __init__(self, *, own: bool = False) -> None:
        self._own = own
        self._imported: set[tuple[str, str]] = set()

    def module(self, said: str, classes: Iterable[str]) -> str:
        """The whole module."""
        imports = "\n".join(f"from {module} import {name}" for module, name in sorted(self._imported))
        return f"{HEAD.format(said=said)}{imports}\n\n\n" + "\n\n\n".join(classes) + "\n"

    def written(self, kind: Any) -> str:
        """A type."""
        origin, inner = get_origin(kind), get_args(kind)
        if kind in (None, NoneType):
            return "None"
        if kind is Any:
            return self.imported("typing", "Any")
        if origin is Annotated:
            return self.written(inner[0])
        if origin in (Union, UnionType):
            return " | ".join(map(self.written, inner))
        if origin is Literal:
            return f"{self.imported('typing', 'Literal')}[{', '.join(map(repr, inner))}]"
        if origin is not None:
            parts = ["..." if each is Ellipsis else self.written(each) for each in inner]
            return f"{self.written(origin)}[{', '.join(parts)}]"
        if is_record(kind):
            return str(kind.__name__) if self._own else self.imported(RECORDS, kind.__name__)
        module = kind.__module__.partition("._")[0]  # Python 3.13 alone has Path in `pathlib._local`
        return str(kind.__name__) if module == "builtins" else self.imported(module, kind.__name__)

    def default(self, field: FieldInfo) -> str:
        """What stands behind the type of a field: its default, if it has one."""
        value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        return "" if value is msgspec.NODEFAULT else f" = {self.value(value)}"

    def value(self, value: Any) -> str:
        """A value."""
        if value is UNSET:
            return self.imported("msgspec", "UNSET")
        if isinstance(value, Enum):
            return f"{self.written(type(value))}.{value.name}"
        if isinstance(value, Struct):
            given = (f"{name}={self.value(each)}" for name, each in msgspec.structs.asdict(value).items())
            return f"{self.written(type(value))}({', '.join(given)})"
        if type(value).__module__ != "builtins":
            self.written(type(value))
        return repr(value)

    def imported(self, module: str, name: str) -> str:
        """The name of something that is imported."""
        self._imported.add((module, name))
        return name


def is_record(kind: Any) -> TypeGuard[type[Struct] | type[Enum]]:
    """Whether a type is one of cotrail's own, which clients have another one for."""
    return isinstance(kind, type) and issubclass(kind, Struct | Enum) and kind.__module__.startswith("cotrail.")


if __name__ == "__main__":
    write()
