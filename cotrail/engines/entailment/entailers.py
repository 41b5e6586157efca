"""Catalogue of entailers: the built-in ones and the tables `[entailers.NAME]` of a user's `models.toml`."""

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from cotrail.common.optional_packages import Library
from cotrail.common.structs import canonical
from cotrail.common.toml_files import read_toml
from cotrail.core.ports.encoders import ENTAILER, Entailer, EntailmentPair, entailed
from cotrail.core.ports.language_model import LanguageModel, Profile
from cotrail.core.questions import Paragraph
from cotrail.core.results import Entailed
from cotrail.engines import engine_catalogue
from cotrail.engines.entailment.labels import Label
from cotrail.engines.language_models.result import shares
from cotrail.engines.model_folders import folder_digest, hugging_face_folder
from cotrail.engines.script_files import ScriptedEngine

Probability = Annotated[float, Meta(ge=0, le=1)]


class Judgement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two probabilities; the rest is that of neutral."""

    entailment: Probability = 0.0
    contradiction: Probability = 0.0

    def __post_init__(self) -> None:
        if self.entailment + self.contradiction > 1:
            raise ValueError("the probabilities add up to more than 1")

    @property
    def entailed(self) -> Entailed:
        """All three probabilities."""
        return entailed(self.entailment, 1 - self.entailment - self.contradiction, self.contradiction)


class EntailmentScript(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    judgements: by a premise, and then by a hypothesis. A premise is named by its title, by its text, or by a piece of
        its text: the first that has the hypothesis counts, and of several pieces the longest.
    default: for pairs that the script doesn't contain.
    """

    judgements: dict[str, dict[str, Judgement]] = {}
    default: Judgement = Judgement()

    def judgement(self, premise: Paragraph, hypothesis: str) -> Judgement:
        """The script's judgement of a hypothesis."""
        pieces = sorted((name for name in self.judgements if name in premise.text), key=len, reverse=True)
        candidates = (self.judgements.get(name, {}) for name in (premise.title, *pieces))
        return next((each[hypothesis] for each in candidates if hypothesis in each), self.default)


class ScriptedEntailer(ScriptedEngine[EntailmentScript]):
    """Judges by a script; see `Entailer`."""

    form = EntailmentScript

    def judge(self, pairs: Sequence[EntailmentPair]) -> list[Entailed]:
        return [self._script.judgement(pair.premise, pair.hypothesis).entailed for pair in pairs]


# Entailment by a language model's own probabilities, where no entailment model is installed.
#
# The prompt follows GPT-3's (Brown et al. 2020, natural language inference), after six examples, two of each answer. A
# language model prefers some answers for any question, so each answer's probability is divided by its probability
# without a premise (contextual calibration, Zhao et al. 2021).
#
# In trials with SmolLM2-135M and made-up pairs, calibration ranked contradictions better, for any order of the
# examples, and changed little else; models as small as this one hardly judge entailment at all.

CHOICES = (" True", " Neither", " False")
"""The answers for entailment, neutral and contradiction."""

_SHOWN = read_toml(Path(__file__).with_name("examples.toml"))

FLOOR = 1e-6
"""Lower bound of a probability without a premise; it limits what an unlikely answer can gain by a premise."""


class PromptedEntailer:
    """Asks a language model twice for each pair; a premise that is too long is cut at its end; see `Entailer`."""

    def __init__(self, model: LanguageModel, identity: str) -> None:
        self._model = model
        self.identity = identity

    def judge(self, pairs: Sequence[EntailmentPair]) -> list[Entailed]:
        """See `Entailer`; raises Interrupted as well."""
        texts = [(pair.premise.statement, pair.hypothesis) for pair in pairs]
        judgements = engine_catalogue.each_once(self._judge, texts)
        return [judgements[pair] for pair in texts]

    def _judge(self, pair: tuple[str, str]) -> Entailed:
        premise, hypothesis = pair
        likely = zip(self._probabilities(premise, hypothesis), self._probabilities("", hypothesis), strict=True)
        return entailed(*shares([with_it / max(without, FLOOR) for with_it, without in likely]))

    def _probabilities(self, premise: str, hypothesis: str) -> tuple[float, ...]:
        return engine_catalogue.probabilities(self._model, lambda text: _prompt(text, hypothesis), premise, CHOICES)


def _prompt(premise: str, hypothesis: str) -> str:
    examples = (
        (_SHOWN["premises"][each["premise"]], each["hypothesis"], each["answer"]) for each in _SHOWN["examples"]
    )
    shown = (f"{_question(text, claim)}{answer}\n\n" for text, claim, answer in examples)
    return "".join(shown) + _question(premise, hypothesis)


def _question(premise: str, hypothesis: str) -> str:
    return f"{premise}\nQuestion: {hypothesis} True, False, or Neither?\nAnswer:"


class Transformers(engine_catalogue.FolderTable, frozen=True, tag="transformers"):
    """A classifier that transformers saved; labels: the meaning of its outputs, if its configuration lacks it."""

    library: ClassVar[Library] = ("transformers", "evidence")

    labels: tuple[Label, Label, Label] | None = None

    def __post_init__(self) -> None:
        if self.labels and len(set(self.labels)) < len(self.labels):
            raise ValueError("the labels are entailment, neutral and contradiction, each once")

    @property
    def digest(self) -> str:
        return hashlib.sha256(canonical([folder_digest(self.path), self.labels])).hexdigest()

    def load(self, identity: str, profile: Profile) -> Entailer:
        from cotrail.engines.entailment.transformers import TransformersEntailer

        return TransformersEntailer(self.path, identity, profile, self.labels)


class ScriptedEntailerTable(engine_catalogue.ScriptTable, frozen=True, tag="scripted"):
    """A scripted entailer; path: its script."""

    scripted = ScriptedEntailer


def _published(model: str) -> engine_catalogue.BuiltIn[Entailer]:
    """A classifier by Nie et al. (2020), whose outputs its description explains, and its configuration doesn't."""
    labels = ("entailment", "neutral", "contradiction")
    return engine_catalogue.BuiltIn(partial(hugging_face_folder, f"ynie/{model}"), Transformers, {"labels": labels})


ENTAILERS: engine_catalogue.EngineCatalogue[Entailer] = engine_catalogue.EngineCatalogue(
    kind=ENTAILER.kind,
    tables=Transformers | ScriptedEntailerTable,
    built_in={
        "albert-xxlarge-anli": _published("albert-xxlarge-v2-snli_mnli_fever_anli_R1_R2_R3-nli"),
        "roberta-large-anli": _published("roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli"),
        "prompted": engine_catalogue.Prompted((_prompt("premise", "hypothesis"), CHOICES), PromptedEntailer),
    },
)
"""The paper uses the first of the built-in ones."""
