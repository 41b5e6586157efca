"""What a single question may be asked of: systems, corpora and models."""

from msgspec import Struct

from cotrail.configuration.settings import settings
from cotrail.engines.models_file import LANGUAGE_MODEL
from cotrail.services.lists.askable_systems import askable_systems, corpus_names
from cotrail.services.lists.model_list import list_models
from cotrail.services.runs.requests import DEFAULT_SYSTEM
from cotrail.systems.registry import find_system


class AskableSystem(Struct, frozen=True, kw_only=True):
    """A system that answers a single question; searches: whether it searches a corpus."""

    name: str
    title: str
    searches: bool


class AskChoices(Struct, frozen=True, kw_only=True):
    """What there is to ask, and what is taken where nothing is named; models: those whose files are there."""

    systems: tuple[AskableSystem, ...]
    corpora: tuple[str, ...]
    models: tuple[str, ...]
    system: str
    model: str


def ask_choices() -> AskChoices:
    """What there is now."""
    return AskChoices(
        systems=tuple(
            AskableSystem(name=name, title=find_system(name).title, searches=searches)
            for name, searches in askable_systems()
        ),
        corpora=tuple(corpus_names()),
        models=tuple(each.name for each in list_models() if each.kind == LANGUAGE_MODEL and each.state != "missing"),
        system=DEFAULT_SYSTEM,
        model=settings().model,
    )
