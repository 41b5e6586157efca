"""Catalogue of raters: the built-in ones and the tables `[raters.NAME]` of a user's `models.toml`."""

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import msgspec
from msgspec import Struct

from cotrail.common.humanize import rounded
from cotrail.common.optional_packages import Library
from cotrail.core.ports.encoders import DECIMALS, RELEVANCE_RATER, Rater, Rating, second_texts
from cotrail.core.ports.language_model import LanguageModel, Profile
from cotrail.core.ports.rate_limiter import RateLimiter
from cotrail.core.questions import Paragraph
from cotrail.core.results import Rated
from cotrail.engines.engine_catalogue import (
    BuiltIn,
    EngineCatalogue,
    FolderTable,
    Prompted,
    ScriptTable,
    ServerTable,
    each_once,
    probabilities,
)
from cotrail.engines.language_models.result import shares
from cotrail.engines.model_folders import hugging_face_folder, trained
from cotrail.engines.script_files import ScriptedEngine
from cotrail.engines.server_address import RerankServer


class RatingScript(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    scores: by a text, and then by another text, or a paragraph's title or text.
    default: for pairs that the script doesn't contain.
    """

    scores: dict[str, dict[str, float]] = {}
    default: float = 0.0


class ScriptedRater(ScriptedEngine[RatingScript]):
    """Scores by a script; see `Rater`."""

    form = RatingScript

    def rate(self, ratings: Sequence[Rating]) -> list[Rated]:
        return [self._rated(each) for each in ratings]

    def _rated(self, rating: Rating) -> Rated:
        scores, default = self._script.scores.get(rating.text, {}), self._script.default

        def score(paragraph: Paragraph) -> float:
            return scores.get(paragraph.title, scores.get(paragraph.text, default))

        return Rated(
            scores=(
                *(scores.get(each, default) for each in rating.others),
                *(score(each) for each in rating.paragraphs),
            )
        )


# Ratings by a language model's own probabilities: does the text answer the query? As in HELM (Liang et al. 2023).

ANSWERS = (" Yes", " No")


class PromptedRater:
    """Asks a language model for each pair: the score is the share of `Yes`. Texts that are too long are cut."""

    def __init__(self, model: LanguageModel, identity: str) -> None:
        self._model = model
        self.identity = identity

    def rate(self, ratings: Sequence[Rating]) -> list[Rated]:
        """See `Rater`; raises Interrupted as well."""
        pairs = [[(rating.text, each) for each in second_texts(rating)] for rating in ratings]
        scores = each_once(self._score, (pair for each in pairs for pair in each))
        return [Rated(scores=tuple(scores[pair] for pair in each)) for each in pairs]

    def _score(self, pair: tuple[str, str]) -> float:
        query, text = pair
        yes, _ = shares(probabilities(self._model, lambda passage: _prompt(passage, query), text, ANSWERS))
        return rounded(yes, DECIMALS)


def _prompt(passage: str, query: str) -> str:
    return f"Passage: {passage}\nQuery: {query}\nDoes the passage answer the query?\nAnswer:"


class CrossEncoders(FolderTable, frozen=True, tag="sentence-transformers"):
    """A cross-encoder that sentence-transformers saved."""

    library: ClassVar[Library] = ("sentence_transformers", "evidence")

    def load(self, identity: str, profile: Profile) -> Rater:
        from cotrail.engines.rating.cross_encoder import CrossEncoderRater

        return CrossEncoderRater(self.path, identity, profile)


class LateInteraction(FolderTable, frozen=True, tag="late-interaction"):
    """A checkpoint of ColBERT, which rates pairs and embeds the tokens of texts."""

    library: ClassVar[Library] = ("transformers", "evidence")

    def load(self, identity: str, profile: Profile) -> Rater:
        from cotrail.engines.rating.late_interaction import LateInteractionRater

        return LateInteractionRater(self.path, identity, profile)

    @property
    def digest(self) -> str:
        return hashlib.sha256(msgspec.json.encode([super().digest, trained(self.path)])).hexdigest()


class Server(ServerTable, RerankServer, frozen=True, tag_field="engine", tag="server"):
    """A rater behind a server."""

    def load(self, identity: str, limiter: RateLimiter) -> Rater:
        from cotrail.engines.rating.served import ServedRater

        return ServedRater(self, identity, limiter)


class ScriptedRaterTable(ScriptTable, frozen=True, tag="scripted"):
    """A scripted rater; path: its script."""

    scripted = ScriptedRater


def _published(model: str) -> BuiltIn[Rater]:
    return BuiltIn(partial(hugging_face_folder, f"cross-encoder/{model}"), CrossEncoders)


RATERS: EngineCatalogue[Rater] = EngineCatalogue(
    kind=RELEVANCE_RATER.kind,
    tables=CrossEncoders | LateInteraction | Server | ScriptedRaterTable,
    built_in={
        "quora-roberta-large": _published("quora-roberta-large"),
        "quora-distilroberta-base": _published("quora-distilroberta-base"),
        "ms-marco-minilm-l6-v2": _published("ms-marco-MiniLM-L6-v2"),
        "prompted": Prompted((_prompt("passage", "query"), ANSWERS), PromptedRater),
    },
)
"""Two of duplicates, one of relevance, and the run's own language model. None is a default: what a score means,
and with that a system's threshold, is the model's."""
