"""How many modules one has to know to follow a thought to its end: the longest chain of imports is bounded."""

import ast
from functools import cache
from pathlib import Path

from tests.unit.statements import statements

ROOT = Path(__file__).parents[2]
FOLDERS = ("api", "cli", "client", "configuration", "migrations", "models", "services", "tasks", "workers")
LONGEST_CHAIN = 17


def module_files() -> dict[str, Path]:
    """Every module of cotrail by its dotted name."""
    files = [path for folder in (*FOLDERS, "cotrail") for path in (ROOT / folder).rglob("*.py")]
    own = (path.relative_to(ROOT).with_suffix("") for path in files if not path.is_symlink())
    names = (path.parts if path.parts[0] == "cotrail" else ("cotrail", *path.parts) for path in own)
    return {
        ".".join(name[:-1] if name[-1] == "__init__" else name): file for name, file in zip(names, files, strict=True)
    }


def test_no_chain_of_imports_is_long() -> None:
    files = module_files()

    @cache
    def imported(module: str) -> frozenset[str]:
        """The modules of cotrail that one imports anywhere in it."""
        names = set()
        for node in statements(ast.parse(files[module].read_text())):
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
    assert len(longest) <= LONGEST_CHAIN, " → ".join(longest)
