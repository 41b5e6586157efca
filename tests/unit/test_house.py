"""The house keeps its size: how many modules there are, how long they are, and how long the chains of imports."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from tests.unit.statements import statements

ROOT = Path(__file__).parents[2]
FOLDERS = ("migrations", "models", "tasks", "workers")
GENERATED = frozenset({"cotrail.client.groups", "cotrail.client.records"})
LIMITS: dict[str, Any] = tomllib.loads((ROOT / "tests" / "house.toml").read_text())


def module_files() -> dict[str, Path]:
    """Every module of cotrail by its dotted name."""
    files = [path for folder in (*FOLDERS, "cotrail") for path in (ROOT / folder).rglob("*.py")]
    own = (path.relative_to(ROOT).with_suffix("") for path in files if not path.is_symlink())
    names = (path.parts if path.parts[0] == "cotrail" else ("cotrail", *path.parts) for path in own)
    return {
        ".".join(name[:-1] if name[-1] == "__init__" else name): file for name, file in zip(names, files, strict=True)
    }


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def written_files() -> dict[str, Path]:
    """Those that people write."""
    return {name: file for name, file in module_files().items() if name not in GENERATED}


def test_modules_and_their_lines_stay_few() -> None:
    lines = {name: len(file.read_text().splitlines()) for name, file in written_files().items()}
    assert len(lines) <= LIMITS["modules"]
    assert sum(lines.values()) <= LIMITS["lines"]
    assert {name: count for name, count in lines.items() if count > LIMITS["lines_of_a_file"]} == {}


def test_functions_fit_on_a_screen() -> None:
    long = [
        f"{name}.{node.name}"
        for name, file in written_files().items()
        if not name.startswith("cotrail.migrations")
        for node in statements(parsed(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _body(node) > LIMITS["lines_of_a_function"]
    ]
    assert long == []


def _body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first, *others = node.body
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and bool(others)
    return (node.end_lineno or 0) - (others[0] if has_docstring else first).lineno + 1


def test_no_chain_of_imports_is_long() -> None:
    files = module_files()

    @cache
    def imported(module: str) -> frozenset[str]:
        """The modules of cotrail that one imports anywhere in it."""
        names = set()
        for node in statements(parsed(files[module])):
            if isinstance(node, ast.ImportFrom) and node.module:
                members = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= members & files.keys() or {node.module}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
        return frozenset(names & files.keys() - {module, "cotrail"})

    @cache
    def chain(module: str) -> tuple[str, ...]:
        return (module, *max((chain(each) for each in sorted(imported(module))), key=len, default=()))

    longest = max(map(chain, files), key=len)
    assert len(longest) <= LIMITS["longest_chain"], " → ".join(longest)


def test_packages_name_modules_that_there_are() -> None:
    files = module_files()
    for package, file in files.items():
        if file.name == "__init__.py":
            named = re.findall(r"`([a-z_0-9]+)`", ast.get_docstring(parsed(file)) or "")
            assert not {f"{package}.{name}" for name in named} - files.keys(), package


def test_words_that_the_field_does_not_use_get_fewer() -> None:
    pages = (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md")
    texts = [file.read_text().lower() for file in (*written_files().values(), *pages)]
    counts = {word: sum(len(re.findall(rf"\b{word}s?\b", text)) for text in texts) for word in LIMITS["words"]}
    assert {word: count for word, count in counts.items() if count > LIMITS["words"][word]} == {}


def test_public_methods_are_described_where_they_are_first_named() -> None:
    """A method without a docstring means what the one of that name does in the port that its class implements."""
    classes = [
        (f"{name}.{node.name}", node)
        for name, file in written_files().items()
        for node in statements(parsed(file))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    methods = [
        (f"{name}.{method.name}", method)
        for name, node in classes
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        and not method.name.startswith("_")
        and ast.unparse(method.body[0]) != "..."
    ]
    described = {method.name for _, method in methods if ast.get_docstring(method)}
    assert [name for name, method in methods if method.name not in described] == []
