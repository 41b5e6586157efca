"""Entailers that transformers loads: classifiers of pairs of texts (natural language inference)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Literal

import torch
from transformers import AutoModelForSequenceClassification

from cotrail.core.ports.encoders import EntailmentPair, entailed
from cotrail.core.ports.language_model import Profile
from cotrail.core.results import Entailed
from cotrail.engines.device_memory import in_batches
from cotrail.engines.pair_models import TOKENS_AT_ONCE, load, most_tokens
from cotrail.errors import InputError, PromptTooLongError, StepError

# The meaning of a classifier's outputs, by its configuration.

Label = Literal["entailment", "neutral", "contradiction"]

Order = tuple[Label, ...]
"""The meaning of each output, in the order of the outputs."""

_STEMS: dict[str, Label] = {"entail": "entailment", "neutral": "neutral", "contradict": "contradiction"}
"""Beginnings of labels' names, in any case."""


def label_order(
    id2label: Mapping[int, str] | None, label2id: Mapping[str, int] | None, configured: Order | None = None
) -> Order:
    """The order that a configuration gives in either of its two tables, or `configured` where it gives none.

    Raises InputError where the order is unclear, for example because the tables differ, or differs from `configured`.
    """
    outputs = {int(number): str(name) for number, name in (id2label or {}).items()}
    if sorted(outputs) != list(range(len(_STEMS))):
        raise InputError(
            f"the model has {len(outputs)} classes ({_shown(outputs)}) instead of entailment, neutral and "
            "contradiction: take another one"
        )
    by_name = {int(number): name for name, number in (label2id or {}).items()}
    orders = {order for order in (_order(outputs), _order(by_name)) if order}
    if configured and orders in (set(), {configured}):
        return configured
    if configured or len(orders) != 1:
        raise InputError(_unclear(outputs, by_name, configured))
    return orders.pop()


def _order(names: Mapping[int, str]) -> Order | None:
    labels = [label for number in sorted(names) if (label := _label(names[number]))]
    return tuple(labels) if sorted(labels) == sorted(_STEMS.values()) and len(names) == len(labels) else None


def _label(name: str) -> Label | None:
    return next((label for stem, label in _STEMS.items() if name.strip().casefold().startswith(stem)), None)


def _unclear(outputs: Mapping[int, str], by_name: Mapping[int, str], order: Order | None) -> str:
    message = f"the model's configuration calls its outputs {_shown(outputs)}"
    if by_name and by_name != outputs:
        message += f", and elsewhere {_shown(by_name)}"
    if order:
        return f"{message}, but its labels are given as {', '.join(order)}: correct the one that is wrong"
    return (
        f'{message}, which leaves their meaning open: say it as labels = ["entailment", "neutral", "contradiction"], '
        "in their true order, in the entailer's table in the list of models"
    )


def _shown(names: Mapping[int, str]) -> str:
    return ", ".join(f"{number}: {names[number]}" for number in sorted(names))


Encoded = dict[str, list[int]]
"""A premise and a hypothesis as the model's inputs: token ids, and which text each belongs to."""

Pair = tuple[str, str]


class TransformersEntailer:
    """A classifier in a folder saved by transformers, on a CUDA device or otherwise the CPU, in float32.

    path, identity: its folder, and its identity.
    profile: `fast` reads pairs of similar lengths together; `deterministic` reads one at a time, so that its
        probabilities have the same bits with any other pairs beside it.
    labels: the meaning of its outputs, where its configuration doesn't give it.
    A premise that is too long is cut at its end. Raises InputError, NotInstalledError.
    """

    def __init__(self, path: Path, identity: str, profile: Profile, labels: Order | None = None) -> None:
        self._identity = identity
        self._model, self._tokenizer = load(AutoModelForSequenceClassification, path, "classifier")
        config = self._model.config
        self._order = label_order(config.id2label, config.label2id, labels)
        # Some tokenizers, such as ALBERT's, leave out token types by default though the model was trained with them.
        self._tells_parts = getattr(config, "type_vocab_size", 0) > 1
        self._limit = most_tokens(self._model, self._tokenizer)
        self._most = TOKENS_AT_ONCE[self._model.device.type] if profile == "fast" else 0
        self._turn = Lock()

    @property
    def identity(self) -> str:
        """See `Entailer`."""
        return self._identity

    def judge(self, pairs: Sequence[EntailmentPair]) -> list[Entailed]:
        """See `Entailer`; raises PromptTooLongError where a hypothesis leaves no room for its premise."""
        texts = [(pair.premise.statement, pair.hypothesis) for pair in pairs]
        with self._turn:
            judgements = self._judged(list(dict.fromkeys(texts)))
        return [judgements[pair] for pair in texts]

    def _judged(self, pairs: list[Pair]) -> dict[Pair, Entailed]:
        encoded = {pair: self._encode(*pair) for pair in pairs}
        judgements: dict[Pair, Entailed] = {}

        def work(batch: list[Pair]) -> None:
            judgements.update(zip(batch, self._read([encoded[pair] for pair in batch]), strict=True))

        in_batches(work, pairs, lambda pair: len(encoded[pair]["input_ids"]), self._most)
        return judgements

    def _encode(self, premise: str, hypothesis: str) -> Encoded:
        if len(self._tokenizer("", hypothesis)["input_ids"]) >= self._limit:
            raise PromptTooLongError(f"{self._identity} takes {self._limit} tokens, which leaves none for a premise")
        return dict(
            self._tokenizer(
                premise,
                hypothesis,
                truncation="only_first",
                max_length=self._limit,
                return_token_type_ids=self._tells_parts,
            )
        )

    def _read(self, batch: list[Encoded]) -> list[Entailed]:
        inputs = self._tokenizer.pad(batch, return_tensors="pt").to(self._model.device)
        with torch.inference_mode():
            logits = self._model(**inputs).logits
        # In float64: in float32 the last of six decimals would depend on the order of the sum.
        likely = torch.softmax(logits.double(), dim=-1)
        if not likely.isfinite().all():
            raise StepError(f"{self._identity} returns values that aren't numbers: its weights are broken")
        return [entailed(**dict(zip(self._order, row, strict=True))) for row in likely.tolist()]
