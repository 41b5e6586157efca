"""A role of an engine, and a kind of engine that can play it: a scripted translator."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from cotrail.core.ports.role import BatchedRole
from cotrail.engines.engine_catalogue import EngineCatalogue, ScriptTable
from cotrail.engines.script_files import ScriptedEngine


class Translator(Protocol):
    """Translates texts."""

    def translate(self, texts: Sequence[str]) -> list[str]:
        """The translations, in the order of the texts."""


TRANSLATOR: BatchedRole[Translator, str, str] = BatchedRole(
    name="translator",
    kind="translator",
    work="translates questions",
    carry_out=lambda translator, texts: translator.translate(texts),
)


class TranslationScript(Struct, frozen=True, forbid_unknown_fields=True):
    """Translations by their texts."""

    translations: dict[str, str] = {}


class ScriptedTranslator(ScriptedEngine[TranslationScript]):
    """Translates by a script."""

    form = TranslationScript

    def translate(self, texts: Sequence[str]) -> list[str]:
        """See `Translator`."""
        return [self._script.translations[text] for text in texts]


class Scripted(ScriptTable, frozen=True, tag="scripted"):
    """A scripted translator; path: its script."""

    scripted = ScriptedTranslator


TRANSLATORS: EngineCatalogue[Translator] = EngineCatalogue(kind=TRANSLATOR.kind, tables=Scripted)
