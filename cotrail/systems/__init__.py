"""The published systems, one file each; `find_system` opens one by name and version."""

from cotrail.systems.registry import SYSTEMS, SystemSpec, find_system

__all__ = ["SYSTEMS", "SystemSpec", "find_system"]
