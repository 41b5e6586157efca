"""The role of the language model that grades answers."""

from cotrail.core.generation import Capability
from cotrail.core.ports.role import EngineRole

JUDGING: frozenset[Capability] = frozenset({"turns", "structure"})
"""What grading asks of a language model."""

JUDGE = EngineRole(name="judge", kind="model", work="grades answers", capabilities=JUDGING)
"""The model that grades inside of a system whose own one answers: `Judge(model=JUDGE.name)`."""
