"""Systems: listed, and shown with their settings."""

from cotrail.services.access.actor import Scope
from cotrail.services.lists import system_list
from cotrail.services.lists.system_list import DescribedSystem, ListedSystem
from cotrail.services.operations.operation import operation


@operation("GET", "/systems", Scope.READ)
def index() -> tuple[ListedSystem, ...]:
    """List the systems."""
    return system_list.list_systems()


@operation("GET", "/systems/{system}", Scope.READ)
def show(system: str) -> DescribedSystem:
    """Show a system: all settings with their defaults and meanings."""
    return system_list.describe_system(system)
