"""What a run pins, and which therefore decides the results of its steps."""

from msgspec import Struct


class Binding(Struct, frozen=True, kw_only=True):
    """What a run pins beside its system, and which therefore decides a step's result.

    model: the name and digest of the model; profile: the serving profile; corpus: the index's revision.
    embedder, entailer: name and digest of the models that compare sentences; knowledge: each source's revision.
    All of these are empty where the system needs none.
    """

    model: str
    profile: str
    temperature: float
    seed: int
    corpus: str
    embedder: str = ""
    entailer: str = ""
    knowledge: dict[str, str] = {}
