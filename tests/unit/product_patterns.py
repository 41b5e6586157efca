"""The regular expressions of the product, as they are found in it: nobody has to list a new one."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import cotrail
from cotrail.common.log_formatting import Secrets
from cotrail.core.table_sentences import boundary
from cotrail.engines.language_models.thinking import MARKS, control_pattern, mark_pattern

FOLDERS = ("cotrail", "models", "tasks", "workers")
ROOT = Path(__file__).parents[2]

Pattern = re.Pattern[Any]

CONTROLS = ("<s>", "</s>", "<|im_start|>", "<|im_end|>", *(f"<|reserved_special_token_{n}|>" for n in range(250)))
SECRET = "an \u00e9tude/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

MADE: Mapping[str, Callable[[], Pattern]] = {
    "cotrail/common/log_formatting.py: Secrets.__init__": lambda: _only(vars(Secrets([SECRET])).values()),
    "cotrail/core/table_sentences.py: boundary": lambda: boundary("a. a " * 51),
    "cotrail/engines/language_models/chat_template.py: _segments": lambda: re.compile("([\U000f0000\U000f0001])"),
    "cotrail/engines/language_models/thinking.py: control_pattern": lambda: control_pattern(CONTROLS),
    "cotrail/engines/language_models/llamacpp/model.py: LlamaCppTokenizer._between": lambda: re.compile(
        f"({control_pattern(CONTROLS).pattern})"
    ),
    "cotrail/engines/language_models/thinking.py: any_of": lambda: mark_pattern(MARKS),
    "cotrail/common/optional_packages.py: extra_with": lambda: re.compile(r"msgspec\b[^-].*extra == .(\w+)"),
}
"""The functions that compile a pattern when they are called, with one of the hardest that each makes."""

SEARCHED = ("cotrail/common/refusals.py: fits", "cotrail/common/optional_packages.py: install_extra")
"""The functions that search for a pattern by its text: that of a field, which `patterns` finds, and an extra's name."""

OWN_TEXT = ("cotrail/common/optional_packages.py: extra_with",)
"""Those that only see what this repository itself contains."""


@cache
def patterns() -> dict[str, Pattern]:
    """Every pattern by a name; equal ones once. All of the product is imported for that."""
    found: dict[Pattern, str] = {}
    for name, pattern in (*_in_modules(), *_in_declarations(), *((name, make()) for name, make in MADE.items())):
        if name not in OWN_TEXT:
            found.setdefault(pattern, name)
    return {name: pattern for pattern, name in found.items()}


def uses_outside_of_constants() -> dict[str, list[str]]:
    """What functions do with the module `re` itself, by their place; modules do nothing but compile patterns."""
    uses: dict[str, list[str]] = {}
    for path, tree in _sources("re"):
        for place, called in _calls(tree, ()):
            if place or called != "compile":
                uses.setdefault(f"{path}: {'.'.join(place)}", []).append(called)
    return uses


def _in_modules() -> Iterator[tuple[str, Pattern]]:
    for module in pkgutil.walk_packages(cotrail.__path__, "cotrail."):
        if not module.name.endswith("__main__") and not module.name.startswith("cotrail.migrations."):
            yield from _held(module.name, vars(importlib.import_module(module.name)), 0)


def _held(name: str, value: object, depth: int) -> Iterator[tuple[str, Pattern]]:
    if isinstance(value, re.Pattern):
        yield name, value
    elif depth < 4 and isinstance(value, dict):
        for key, each in tuple(value.items()):
            yield from _held(f"{name}.{key}", each, depth + 1)
    elif depth < 4 and isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _held(f"{name}[{number}]", each, depth + 1)


def _in_declarations() -> Iterator[tuple[str, Pattern]]:
    """The patterns of fields: msgspec's `Meta(pattern=...)`, pydantic's `Field(pattern=...)`."""
    for path, tree in _sources("pattern"):
        for node in ast.walk(tree):
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg == "pattern":
                    yield f"{path}:{keyword.value.lineno}", re.compile(ast.literal_eval(keyword.value))


def _sources(word: str) -> Iterator[tuple[str, ast.Module]]:
    """The files in which a word stands."""
    stands = re.compile(rf"\b{word}\b")
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if stands.search(text := path.read_text()):
                yield str(path.relative_to(ROOT)), ast.parse(text)


def _calls(node: ast.AST, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        place = (*place, node.name)
    if isinstance(node, ast.ImportFrom) and node.module == "re":
        yield place, "import from"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if isinstance(owner, ast.Name) and owner.id == "re" and node.func.attr != "escape":
            yield place, node.func.attr
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, place)


def _only(values: object) -> Pattern:
    [pattern] = [each for each in values if isinstance(each, re.Pattern)]  # type: ignore[attr-defined]
    return pattern
