"""The binding of a run: models, corpus and parameters that it pins, so that they decide its steps' results."""

from msgspec import Struct


class Binding(Struct, frozen=True, kw_only=True):
    """Everything that a run pins beside its system, and that decides the results of its steps.

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
