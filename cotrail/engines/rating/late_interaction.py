"""Raters by late interaction (ColBERT, Khattab and Zaharia 2020; ColBERTv2, Santhanam et al. 2022).

Query and text are read apart, each token gets an embedding, and the score is the sum, over the query's tokens, of the
highest similarity to any token of the text (MaxSim).
"""

import string
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import BertModel, BertPreTrainedModel

from cotrail.core.ports.encoders import Rating, Side, second_texts
from cotrail.core.ports.language_model import Profile
from cotrail.core.results import Rated
from cotrail.engines.device_memory import TOKENS_AT_ONCE, DeviceReader, load, most_tokens
from cotrail.engines.embedding.cosine_similarity import max_sim
from cotrail.engines.model_folders import trained


class ColBert(BertPreTrainedModel):  # type: ignore[misc]
    """BERT with a projection of its last layer."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.linear = torch.nn.Linear(config.hidden_size, trained(Path(config.name_or_path)).dim, bias=False)
        self.post_init()

    def forward(self, **inputs: Any) -> Any:
        """The embedding of each token, of length 1."""
        return torch.nn.functional.normalize(self.linear(self.bert(**inputs)[0]), p=2, dim=2)


MarkedText = tuple[str, Side]


class LateInteractionRater(DeviceReader[MarkedText, Any]):
    """A checkpoint of ColBERT in a folder; see `DeviceReader`, `Rater`, `Embeds` and `KnowsLength`.

    A query is filled up with mask tokens to `query_maxlen`, which count as its tokens; texts are cut at their ends, and
    their punctuation doesn't count. Raises InputError, NotInstalledError.
    """

    def __init__(self, path: Path, identity: str, profile: Profile) -> None:
        self._trained = trained(path)
        self._model, self._tokenizer = load(ColBert, path, "checkpoint of ColBERT")
        super().__init__(identity, profile, TOKENS_AT_ONCE[self._model.device.type])
        self._limit = most_tokens(self._model, self._tokenizer)
        marks = string.punctuation if self._trained.mask_punctuation else ""
        skipped = self._tokenizer.convert_tokens_to_ids(list(marks)) if marks else []
        self._skipped = torch.tensor(sorted({each for each in skipped if each != self._tokenizer.unk_token_id}))

    def rate(self, ratings: Sequence[Rating]) -> list[Rated]:
        asked = [(rating.text, second_texts(rating)) for rating in ratings]
        read = self._embedded([(query, "query") for query, texts in asked if texts])
        read |= self._embedded([(each, "text") for _, texts in asked for each in texts])
        return [
            Rated(scores=tuple(max_sim(read[query, "query"], read[each, "text"]) for each in texts))
            for query, texts in asked
        ]

    def embed(self, texts: Sequence[str], side: Side) -> Sequence[Any]:
        read = self._embedded((each, side) for each in texts)
        return [read[each, side] for each in texts]

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        most = self._most_tokens("text") - 1  # besides the marker
        return [len(self._tokenizer(each, verbose=False)["input_ids"]) > most for each in texts]

    def _embedded(self, marked: Iterable[MarkedText]) -> dict[MarkedText, Any]:
        """The embeddings of each text's tokens, one a row."""
        with self._turn, torch.inference_mode():
            return self._read_all(list(dict.fromkeys(marked)), lambda each: len(self._ids(each)), self._read)

    def _most_tokens(self, side: Side) -> int:
        return min(self._trained.query_maxlen if side == "query" else self._trained.doc_maxlen, self._limit)

    def _ids(self, marked: MarkedText) -> list[int]:
        """The tokens of a text, with its marker behind the first one."""
        (text, side), most = marked, self._most_tokens(marked[1])
        marker = self._trained.query_token_id if side == "query" else self._trained.doc_token_id
        ids: list[int] = self._tokenizer(text, truncation=True, max_length=most - 1)["input_ids"]
        ids = [ids[0], self._tokenizer.convert_tokens_to_ids(marker), *ids[1:]]
        return ids + [self._tokenizer.mask_token_id] * (most - len(ids)) if side == "query" else ids

    def _read(self, batch: list[MarkedText]) -> list[Any]:
        rows = [torch.tensor(self._ids(each)) for each in batch]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self._tokenizer.pad_token_id)
        attended = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        if not self._trained.attend_to_mask_tokens:
            attended = attended * (ids != self._tokenizer.mask_token_id)
        device = self._model.device
        found = self._model(input_ids=ids.to(device), attention_mask=attended.to(device)).cpu()
        self._check(finite=bool(torch.isfinite(found).all()))
        return [
            embeddings[: len(row)][(row >= 0) if side == "query" else ~torch.isin(row, self._skipped)].numpy()
            for embeddings, row, (_, side) in zip(found, rows, batch, strict=True)
        ]
