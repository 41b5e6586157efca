"""Entailment by a language model's own probabilities, where no entailment model is installed.

The prompt follows GPT-3's (Brown et al. 2020, natural language inference), after six examples, two of each answer. A
language model prefers some answers for any question, so each answer's probability is divided by its probability
without a premise (contextual calibration, Zhao et al. 2021).

In trials with SmolLM2-135M and made-up pairs, calibration ranked contradictions better, for any order of the
examples, and changed little else; models as small as this one hardly judge entailment at all.
"""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from cotrail.common.canonical_json import canonical
from cotrail.core.ports.entailer import EntailmentPair, entailed
from cotrail.core.ports.language_model import LanguageModel
from cotrail.core.results import Entailed
from cotrail.engines.language_models.probabilities import shares
from cotrail.engines.model_identity import model_identity
from cotrail.errors import PromptTooLongError

CHOICES = (" True", " Neither", " False")
"""The answers for entailment, neutral and contradiction."""

_OSLO = "Oslo\nOslo is the capital of Norway. It lies at the head of the Oslofjord."
_CORVIN = "Corvin\nA corvin is a small boat with one sail, used by the fishermen of the Amber Sea."
_TRAIN = "The Night Train\nThe Night Train is a novel of 1931 by the Danish writer Else Krag."

EXAMPLES = (
    (_TRAIN, "The Night Train is a film.", " False"),
    (_CORVIN, "A corvin has one sail.", " True"),
    (_OSLO, "Oslo was founded by a king.", " Neither"),
    (_OSLO, "Oslo is the capital of Sweden.", " False"),
    (_CORVIN, "Corvins are painted blue.", " Neither"),
    (_OSLO, "Oslo is in Norway.", " True"),
)

FLOOR = 1e-6
"""Lower bound of a probability without a premise; it limits what an unlikely answer can gain by a premise."""

AT_ONCE = 8
"""Pairs that are judged concurrently; models with fewer slots queue the others."""


def prompted_identity(name: str, model: str) -> str:
    """The identity of such an entailer: its prompt, and the identity of the language model."""
    digest = hashlib.sha256(canonical([_prompt("premise", "hypothesis"), CHOICES])).hexdigest()
    return f"{model_identity(name, digest)}+{model}"


class PromptedEntailer:
    """Asks a language model twice for each pair; a premise that is too long is cut at its end."""

    def __init__(self, model: LanguageModel, name: str = "prompted") -> None:
        self._model = model
        self._identity = prompted_identity(name, model.identity)

    @property
    def identity(self) -> str:
        """See `Entailer`."""
        return self._identity

    def judge(self, pairs: Sequence[EntailmentPair]) -> list[Entailed]:
        """See `Entailer`; raises Interrupted as well."""
        texts = [(pair.premise.statement, pair.hypothesis) for pair in pairs]
        distinct = list(dict.fromkeys(texts))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            judgements = dict(zip(distinct, pool.map(lambda pair: self._judge(*pair), distinct), strict=True))
        return [judgements[pair] for pair in texts]

    def _judge(self, premise: str, hypothesis: str) -> Entailed:
        likely = zip(self._probabilities(premise, hypothesis), self._probabilities("", hypothesis), strict=True)
        return entailed(*shares([with_it / max(without, FLOOR) for with_it, without in likely]))

    def _probabilities(self, premise: str, hypothesis: str) -> tuple[float, ...]:
        try:
            return self._model.probabilities(_prompt(premise, hypothesis), CHOICES)
        except PromptTooLongError:
            if not premise:
                raise
            # Halved until it fits: the port doesn't count tokens.
            return self._probabilities(premise[: len(premise) // 2], hypothesis)


def _prompt(premise: str, hypothesis: str) -> str:
    examples = [f"{_question(text, claim)}{answer}\n\n" for text, claim, answer in EXAMPLES]
    return "".join(examples) + _question(premise, hypothesis)


def _question(premise: str, hypothesis: str) -> str:
    return f"{premise}\nQuestion: {hypothesis} True, False, or Neither?\nAnswer:"
