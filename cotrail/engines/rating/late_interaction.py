"""Raters by late interaction (ColBERT, Khattab and Zaharia 2020; ColBERTv2, Santhanam et al. 2022).

Query and text are read apart, each token gets an embedding, and the score is the sum, over the query's tokens, of the
highest similarity to any token of the text (MaxSim).
"""

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from msgspec import Struct
from transformers import BertModel, BertPreTrainedModel

from cotrail.common.humanize import rounded
from cotrail.core.ports.encoders import DECIMALS, Rating, second_texts
from cotrail.core.ports.language_model import Profile
from cotrail.core.results import Rated
from cotrail.engines.device_memory import TOKENS_AT_ONCE, DeviceReader, load, most_tokens
from cotrail.errors import InputError

METADATA = "artifact.metadata"
"""The file in which ColBERT's code saves how a checkpoint was trained."""


class Trained(Struct, frozen=True):
    """What of that decides the scores, with the defaults of ColBERTv2's code; tokens are counted with markers."""

    dim: int = 128
    query_maxlen: int = 32
    doc_maxlen: int = 220
    query_token_id: str = "[unused0]"  # noqa: S105
    doc_token_id: str = "[unused1]"  # noqa: S105
    mask_punctuation: bool = True
    attend_to_mask_tokens: bool = False


def trained(path: Path) -> Trained:
    """How the checkpoint in a folder was trained; raises InputError where the file can't be read."""
    try:
        return msgspec.json.decode((path / METADATA).read_bytes(), type=Trained)
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(f"{path} is no checkpoint of ColBERT: {METADATA} can't be read ({error})") from error


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


Side = tuple[str, bool]
"""A text, and whether it is a query."""


class LateInteractionRater(DeviceReader[Side, Any]):
    """A checkpoint of ColBERT in a folder; see `DeviceReader` and `Rater`.

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
        asked = [((rating.text, True), [(each, False) for each in second_texts(rating)]) for rating in ratings]
        with self._turn, torch.inference_mode():
            sides = dict.fromkeys(side for query, texts in asked if texts for side in (query, *texts))
            read = self._read_all(list(sides), lambda side: len(self._ids(side)), self._read)
        return [Rated(scores=tuple(_max_sim(read[query], read[each]) for each in texts)) for query, texts in asked]

    def _ids(self, side: Side) -> list[int]:
        """The tokens of a text, with its marker behind the first one."""
        text, is_query = side
        most = min(self._trained.query_maxlen if is_query else self._trained.doc_maxlen, self._limit)
        marker = self._trained.query_token_id if is_query else self._trained.doc_token_id
        ids: list[int] = self._tokenizer(text, truncation=True, max_length=most - 1)["input_ids"]
        marked = [ids[0], self._tokenizer.convert_tokens_to_ids(marker), *ids[1:]]
        return marked + [self._tokenizer.mask_token_id] * (most - len(marked)) if is_query else marked

    def _read(self, batch: list[Side]) -> list[Any]:
        """The embeddings of the tokens that count, of each text."""
        rows = [torch.tensor(self._ids(each)) for each in batch]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self._tokenizer.pad_token_id)
        attended = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        if not self._trained.attend_to_mask_tokens:
            attended = attended * (ids != self._tokenizer.mask_token_id)
        device = self._model.device
        found = self._model(input_ids=ids.to(device), attention_mask=attended.to(device)).cpu()
        self._check(finite=bool(torch.isfinite(found).all()))
        return [
            embeddings[: len(row)] if is_query else embeddings[: len(row)][~torch.isin(row, self._skipped)]
            for embeddings, row, (_, is_query) in zip(found, rows, batch, strict=True)
        ]


def _max_sim(query: Any, text: Any) -> float:
    return rounded(float((query.double() @ text.double().T).max(dim=1).values.sum()), DECIMALS)
