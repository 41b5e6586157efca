"""Systems of one's own: a generator function becomes a system, and a file of it one that is found by its digest.

A run names such a system as `NAME@DIGEST`; its text is kept under that digest, whatever becomes of the file.
"""

import ast
import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints, overload

import msgspec
from msgspec import Struct, structs

from cotrail.common.printable_text import storable
from cotrail.common.processes import FOLDERS
from cotrail.common.text_files import write_whole
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.generation import Until
from cotrail.core.prompts import Piece, Prompt, plain, user
from cotrail.core.questions import Paragraph
from cotrail.core.results import Generated, Retrieved
from cotrail.core.system import Part, System, expect
from cotrail.errors import InputError
from cotrail.systems.spec import Needs, SystemSpec, always

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")

NEEDS = Needs(corpus=True)
"""What a system needs that doesn't say it."""

Made = Callable[[Callable[..., System]], SystemSpec]
"""Makes a system of a function."""


@overload
def system(function: Callable[..., System]) -> SystemSpec: ...


@overload
def system(*, name: str = ..., version: int = ..., needs: Needs = ...) -> Made: ...


def system(
    function: Callable[..., System] | None = None, *, name: str = "", version: int = 1, needs: Needs = NEEDS
) -> SystemSpec | Made:
    """Make a system of a generator function, which takes a question, and settings as keywords with defaults.

    name: the function's own, with hyphens, where none is given; version: counts up as it is changed. needs: what a run
    needs, a corpus unless said otherwise. Raises InputError where the function can't be a system.
    """
    if function is None:
        return lambda given: _made(given, name, version, needs)
    if not callable(function):
        raise InputError(f"a system is a function that yields actions, its name or its file, and not {function!r:.100}")
    return _made(function, name, version, needs)


def _made(function: Callable[..., System], name: str, version: int, needs: Needs) -> SystemSpec:
    called = name or getattr(function, "__name__", type(function).__name__).replace("_", "-")
    if not inspect.isgeneratorfunction(function):
        raise InputError(f"the function of {called} yields nothing: a system yields its actions, and returns an Answer")
    if not NAME.fullmatch(called):
        raise InputError(f"a system can't be named {called!r}: take small letters, digits and hyphens")
    parameters = list(inspect.signature(function).parameters.values())
    question, settings = parameters[:1], parameters[1:]
    if not question or question[0].kind is question[0].KEYWORD_ONLY or not all(map(_has_default, settings)):
        raise InputError(
            f"the function of {called} takes the question first, then settings that have defaults, such as numbers"
        )
    types = get_type_hints(function)
    fields = [(each.name, types.get(each.name, Any), each.default) for each in settings]
    return SystemSpec(
        name=called,
        version=version,
        title=called,
        meaning=(inspect.getdoc(function) or "").partition("\n")[0],
        settings=msgspec.defstruct(
            "Settings", fields, frozen=True, kw_only=True, forbid_unknown_fields=True, module=function.__module__
        ),
        open=lambda asked, _, given: function(asked, **structs.asdict(given)),
        needs=always(needs),
    )


def _has_default(setting: inspect.Parameter) -> bool:
    with suppress(TypeError, ValueError):
        msgspec.json.encode(setting.default)
        return setting.default is not setting.empty
    return False


def search(query: str, count: int = 3, *, corpus: str = "") -> Part[tuple[Paragraph, ...]]:
    """The best paragraphs for a query, as in `found = yield from cotrail.search(question.text)`."""
    if not isinstance(query, str):
        raise TypeError(f"a query is text, and this is {query!r:.100}")
    return expect((yield Retrieve(query=storable(query), count=count, corpus=corpus)), Retrieved).paragraphs


def write(*pieces: str | Piece, max_tokens: int = 200, until: Until = "line", chat: bool = False) -> Part[str]:
    """What the model writes behind these words, as in `said = yield from cotrail.write("Q: ", question.text)`.

    until: where it ends at the latest, see `cotrail.core.generation.Until`. chat: whether the words are a user's turn,
    which the system's needs declare as `Needs(corpus=True, capabilities=frozenset({"turns"}))`.
    """
    prompt = Prompt(turns=((user if chat else plain)(*pieces),))
    return expect((yield Reason(prompt=prompt, max_tokens=max_tokens, until=until)), Generated).text


DIGEST_DIGITS = 16
"""Hexadecimal digits of a digest in a name."""

_KEPT = "source.json"


class Source(Struct, frozen=True, kw_only=True):
    """The text of a module with that of the modules next to it that it imports, by file name; main: its own file."""

    main: str
    files: dict[str, str]

    @property
    def digest(self) -> str:
        """Of all of it."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:DIGEST_DIGITS]


def read_source(path: Path) -> Source:
    """The text of a file and of the modules next to it that it imports; raises InputError where one is no Python."""
    files: dict[str, str] = {}
    awaited = [path.name]
    while awaited:
        name = awaited.pop()
        if name in files or not (file := path.parent / name).is_file():
            continue
        try:
            files[name] = file.read_text("utf-8-sig")
            tree = ast.parse(files[name], str(file))
            awaited += [f"{module}.py" for module in _imported(tree)]
            _check_imports(file, tree)
        except (OSError, ValueError, SyntaxError) as error:
            place = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            raise InputError(f"{file} can't be read as Python{place} ({error}); correct it") from error
    if not files:
        raise InputError(f"there is no file {path}; check the path")
    return Source(main=path.name, files=files)


def _check_imports(file: Path, tree: ast.Module) -> None:
    """Raises InputError where a module next to it is imported by a function: it is only found as the file is loaded."""
    inside = {each for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for each in ast.walk(node)}
    for name in _imported(inside):
        if (file.parent / f"{name}.py").is_file():
            raise InputError(f"{file} imports {name} inside a function: import it at the top of the file")


def _imported(nodes: ast.Module | Iterable[ast.AST]) -> Iterator[str]:
    """The names of modules that may stand next to it."""
    for node in ast.walk(nodes) if isinstance(nodes, ast.Module) else nodes:
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ([node.module.partition(".")[0]] if node.module else [each.name for each in node.names])


IMPURE = frozenset({"datetime", "logging", "os", "random", "secrets", "socket", "time", "uuid"})
"""Clocks, chance, the surroundings: modules that aren't the same each time."""


def _impurities(tree: ast.Module) -> Iterator[str]:
    assigned = [each for each in ast.walk(tree) if isinstance(each, ast.Assign)]
    names = [(to.id, _is_set(each.value)) for each in assigned for to in each.targets if isinstance(to, ast.Name)]
    named = {name for name, is_set in names if is_set} - {name for name, is_set in names if not is_set}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for module in sorted(IMPURE.intersection(each.partition(".")[0] for each in modules)):
                yield f"line {node.lineno}: {module} isn't the same each time"
        for each in _in_order(node):
            if _is_set(each) or (isinstance(each, ast.Name) and each.id in named):
                yield f"line {each.lineno}: a set has no order; sort it"


def _in_order(node: ast.AST) -> Sequence[ast.expr]:
    """The values that are gone through one after another."""
    match node:
        case ast.For(iter=each) | ast.comprehension(iter=each) | ast.Starred(value=each):
            return [each]
        case ast.Call(func=ast.Name(id="list" | "tuple" | "enumerate" | "iter") | ast.Attribute(attr="join")):
            return node.args
    return []


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_set(node.left) or _is_set(node.right)
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return isinstance(node, ast.Set | ast.SetComp) or called in ("set", "frozenset")


def keep(source: Source, folder: Path) -> Path:
    """Keep the text in the folder, under its digest; returns where."""
    place = folder / source.digest
    with suppress(InputError):
        if _kept(place) == source:  # so that several who submit it at once don't get in each other's way
            return place
    place.mkdir(parents=True, exist_ok=True)
    for name, text in source.files.items():
        write_whole(place / name, [text.encode()])
    write_whole(place / _KEPT, [msgspec.json.encode(source)])
    return place


def _kept(place: Path) -> Source:
    """The text that is kept there; raises InputError where it isn't what was kept."""
    try:
        source = msgspec.json.decode((place / _KEPT).read_bytes(), type=Source)
        same = all((place / name).read_text("utf-8") == text for name, text in source.files.items())
    except (OSError, ValueError) as error:
        raise InputError(f"no system can be read from {place} ({error}); submit its file again") from error
    if source.digest != place.name or not same:
        raise InputError(f"the system in {place} was changed; submit its file again")
    return source


def load(place: Path) -> list[SystemSpec]:
    """The systems of the text that is kept there, with the digest in their names; raises InputError."""
    source = _kept(place)
    module = _module(place, source)
    found = {id(each): each for each in vars(module).values() if isinstance(each, SystemSpec)}
    if not found:
        raise InputError(f"{source.main} has no system: put `@cotrail.system` above a function that yields actions")
    names = [each.name for each in found.values()]
    if twice := [each for each in names if names.count(each) > 1]:
        raise InputError(f"{source.main} has several systems named {twice[0]}: give each a name of its own")
    return [structs.replace(each, name=f"{each.name}@{source.digest}") for each in found.values()]


def _module(place: Path, source: Source) -> ModuleType:
    """The module, imported once in a process, in a package of its own, so that modules next to it aren't others'."""
    package, stem = f"cotrail_system_{source.digest}", Path(source.main).stem
    if package not in sys.modules:
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [str(place)]
    siblings = {Path(name).stem for name in source.files}
    hidden = {name: sys.modules.pop(name) for name in siblings & sys.modules.keys()}
    sys.path.insert(0, str(place))
    try:
        return import_module(f"{package}.{stem}")
    except (Exception, SystemExit) as error:
        folders = isinstance(error, ModuleNotFoundError) * "; modules next to it are taken along, and no folders"
        said = f"({type(error).__name__}: {error}); correct it{folders}"
        raise InputError(f"{source.main} can't be imported {said}") from error
    finally:
        sys.path.remove(str(place))
        for name in siblings & sys.modules.keys():
            del sys.modules[name]
        sys.modules.update(hidden)


def installed(path: str, folder: Path, warn: Callable[[str], None] = lambda _: None) -> str:
    """Keep the system of a file, `FILE.py` or `FILE.py:NAME`, in the folder; returns the name by which runs find it.

    warn: is called with what may make it impure. Raises InputError where it has no system, or several and names none.
    """
    file, _, wanted = path.partition(".py")
    source = read_source(Path(f"{file}.py").absolute())
    for each in [f"{name}, {each}" for name, text in source.files.items() for each in _impurities(ast.parse(text))]:
        warn(each)
    place = keep(source, folder)
    names = sorted({each.name for each in load(place)})
    chosen = [each for each in names if wanted in ("", f":{each.partition('@')[0]}")]
    if len(chosen) != 1:
        known = ", ".join(each.partition("@")[0] for each in names)
        raise InputError(f"{file}.py has the systems {known}: name one, as {file}.py:NAME")
    if folder not in FOLDERS:
        FOLDERS.append(folder)
    return chosen[0]


def bring(name: str, files: Mapping[str, str], folder: Path) -> None:
    """Keep the text of the system `NAME@DIGEST` as a run recorded it, where it isn't kept here; no other text is."""
    if _place(name) is not None or any(each != Path(each).name for each in files):
        return
    for main in files:
        source = Source(main=main, files=dict(files))
        if source.digest == name.partition("@")[2]:
            keep(source, folder)


def is_file(name: str) -> bool:
    """Whether a system is named by a file."""
    return name.endswith(".py") or ".py:" in name


def found(name: str) -> list[SystemSpec]:
    """The versions of the system `NAME@DIGEST`; none where its text isn't kept here."""
    return [each for each in load(place) if each.name == name] if (place := _place(name)) else []


def kept_source(name: str) -> Source | None:
    """The text of the system `NAME@DIGEST`; None where it isn't kept here, as of cotrail's own."""
    return _kept(place) if (place := _place(name)) else None


def _place(name: str) -> Path | None:
    digest = name.partition("@")[2]
    is_one = len(digest) == DIGEST_DIGITS and digest.isalnum()
    return next((folder / digest for folder in FOLDERS if is_one and (folder / digest).is_dir()), None)
