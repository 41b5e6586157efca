"""Pages of the documentation that are written from the code: nothing is missing, and all of it is described."""

import re

from building.references import pages
from cotrail.cli.lazy_group import COMMANDS
from cotrail.services.operations.all_operations import OPERATIONS


def test_every_command_name_and_operation_is_described() -> None:
    commands, names, http = (pages()[name] for name in ("commands.md", "python.md", "http.md"))
    assert all(f"### cotrail {each.name}" in commands for each in COMMANDS)
    assert all(f"`{each.method} /v1{each.path}`" in http for each in OPERATIONS.values())
    assert "## cotrail.ask\n" in names
    assert not re.findall(r"(?m)^\| `[^`]*` \| *\|?$", commands + names + http)
