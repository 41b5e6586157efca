"""Catalogue of raters: the built-in ones and the tables `[raters.NAME]` of a user's `models.toml`."""

from functools import partial
from typing import ClassVar

from cotrail.core.ports.language_model import Profile
from cotrail.core.ports.rate_limiter import RateLimiter
from cotrail.core.ports.rater import RELEVANCE_RATER, Rater
from cotrail.engines.engine_catalogue import BuiltIn, EngineCatalogue, FolderTable, ScriptTable, ServerTable
from cotrail.engines.model_folders import hugging_face_folder
from cotrail.engines.optional_packages import Library
from cotrail.engines.rating.rerank_server import RerankServer
from cotrail.engines.rating.scripted import ScriptedRater


class CrossEncoders(FolderTable, frozen=True, tag="sentence-transformers"):
    """A cross-encoder that sentence-transformers saved."""

    library: ClassVar[Library] = ("sentence_transformers", "evidence")

    def load(self, identity: str, profile: Profile) -> Rater:
        """See `FolderTable`."""
        from cotrail.engines.rating.cross_encoder import CrossEncoderRater

        return CrossEncoderRater(self.path, identity, profile)


class Server(ServerTable, RerankServer, frozen=True, tag_field="engine", tag="server"):
    """A rater behind a server."""

    def load(self, identity: str, limiter: RateLimiter) -> Rater:
        """See `ServerTable`."""
        from cotrail.engines.rating.served import ServedRater

        return ServedRater(self, identity, limiter)


class Scripted(ScriptTable, frozen=True, tag="scripted"):
    """A scripted rater; path: its script."""

    scripted = ScriptedRater


def _published(model: str) -> BuiltIn[Rater]:
    return BuiltIn(partial(hugging_face_folder, f"cross-encoder/{model}"), CrossEncoders)


RATERS: EngineCatalogue[Rater] = EngineCatalogue(
    kind=RELEVANCE_RATER.kind,
    tables=CrossEncoders | Server | Scripted,
    built_in={
        "quora-roberta-large": _published("quora-roberta-large"),
        "quora-distilroberta-base": _published("quora-distilroberta-base"),
        "ms-marco-minilm-l6-v2": _published("ms-marco-MiniLM-L6-v2"),
    },
)
"""Two of duplicates, and one of relevance. None is a default: what a score means, and with it a system's threshold, is
the model's."""
