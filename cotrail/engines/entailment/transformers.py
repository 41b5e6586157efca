"""Entailers that transformers loads: classifiers of pairs of texts (natural language inference)."""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification

from cotrail.core.ports.encoders import EntailmentPair, entailed
from cotrail.core.ports.language_model import Profile
from cotrail.core.results import Entailed
from cotrail.engines.device_memory import TOKENS_AT_ONCE, DeviceReader, load, most_tokens
from cotrail.engines.entailment.labels import Order, label_order
from cotrail.errors import PromptTooLongError

Encoded = dict[str, list[int]]
"""A premise and a hypothesis as the model's inputs: token ids, and which text each belongs to."""

Pair = tuple[str, str]


class TransformersEntailer(DeviceReader[Pair, Entailed]):
    """A classifier in a folder saved by transformers; see `DeviceReader`.

    path: its folder.
    labels: the meaning of its outputs, where its configuration doesn't give it.
    A premise that is too long is cut at its end. Raises InputError, NotInstalledError.
    """

    def __init__(self, path: Path, identity: str, profile: Profile, labels: Order | None = None) -> None:
        self._model, self._tokenizer = load(AutoModelForSequenceClassification, path, "classifier")
        config = self._model.config
        self._order = label_order(config.id2label, config.label2id, labels)
        # Some tokenizers, such as ALBERT's, leave out token types by default though the model was trained with them.
        self._tells_parts = getattr(config, "type_vocab_size", 0) > 1
        self._limit = most_tokens(self._model, self._tokenizer)
        super().__init__(identity, profile, TOKENS_AT_ONCE[self._model.device.type])

    def judge(self, pairs: Sequence[EntailmentPair]) -> list[Entailed]:
        """See `Entailer`; raises PromptTooLongError where a hypothesis leaves no room for its premise."""
        texts = [(pair.premise.statement, pair.hypothesis) for pair in pairs]
        with self._turn:
            judgements = self._judged(list(dict.fromkeys(texts)))
        return [judgements[pair] for pair in texts]

    def _judged(self, pairs: list[Pair]) -> dict[Pair, Entailed]:
        encoded = {pair: self._encode(*pair) for pair in pairs}
        return self._read_all(
            pairs,
            lambda pair: len(encoded[pair]["input_ids"]),
            lambda batch: self._read([encoded[pair] for pair in batch]),
        )

    def _encode(self, premise: str, hypothesis: str) -> Encoded:
        if len(self._tokenizer("", hypothesis)["input_ids"]) >= self._limit:
            raise PromptTooLongError(f"{self.identity} takes {self._limit} tokens, which leaves none for a premise")
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
        self._check(finite=bool(likely.isfinite().all()))
        return [entailed(**dict(zip(self._order, row, strict=True))) for row in likely.tolist()]
