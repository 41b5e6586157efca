"""The local stack: PostgreSQL, Redis, the workers and Flower as background processes of one person's machine."""

from workers.stack.flower import Access
from workers.stack.process import Service
from workers.stack.stack import Stack
from workers.stack.status import State, Status

__all__ = ["Access", "Service", "Stack", "State", "Status"]
