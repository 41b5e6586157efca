"""Extractors that transformers loads: DPR's readers, and models trained on SQuAD 2.0.

Question and paragraph as the inputs of a reader, put together as its family was trained.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from msgspec import Struct
from transformers import AutoConfig, AutoModelForQuestionAnswering, DPRReader

from cotrail.common.humanize import rounded
from cotrail.core.ports.encoders import DECIMALS, MOST_TOKENS, Extraction
from cotrail.core.ports.language_model import Profile
from cotrail.core.results import Extracted
from cotrail.engines.device_memory import TOKENS_AT_ONCE, DeviceReader, load, most_tokens
from cotrail.engines.model_folders import loading
from cotrail.errors import InputError, PromptTooLongError

# The choice of an answer among the spans of a paragraph's tokens.

Span = tuple[int, int]
"""A first and a last token, or a first character and the one behind the last."""


def best_span(starts: Sequence[float], ends: Sequence[float]) -> Span | None:
    """The first and the last token of the answer, at most `MOST_TOKENS`; None where there are no tokens.

    starts, ends: each token's logits of being the first and the last. The sum of the two decides; of equal sums the
    earliest span counts, and of these the shortest.
    """
    tokens = range(len(starts))
    spans = ((first, last) for first in tokens for last in tokens[first : first + MOST_TOKENS])
    return max(spans, key=lambda span: starts[span[0]] + ends[span[1]], default=None)


def trimmed(text: str, span: Span) -> Span:
    """The characters of a span without spaces around them, which some tokenizers count as part of a word."""
    start, end = span
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip()) if piece.strip() else end


class ReaderInput(Struct, frozen=True, kw_only=True):
    """A question and a paragraph as a reader sees them.

    tokens: the model's inputs. first: where the paragraph's text begins among them; characters: where each of its
    tokens is in it. null: the token by which a model trained on SQuAD 2.0 says that there is no answer.
    """

    tokens: dict[str, list[int]]
    first: int
    characters: tuple[Span, ...]
    null: int = 0


def dpr_input(tokenizer: Any, limit: int, question: str, title: str, text: str) -> ReaderInput:
    """The input of a DPR reader: `[CLS] question [SEP] title [SEP] text` (Karpukhin et al. 2020).

    limit: the most tokens; a text that is too long is cut at its end. Raises PromptTooLongError.
    """
    head = _pair_tokens(tokenizer, question, title)
    _check_room(len(head), limit)
    body = tokenizer(
        text, add_special_tokens=False, truncation=True, max_length=limit - len(head), return_offsets_mapping=True
    )
    tokens = [*head, *body["input_ids"]]
    return ReaderInput(
        # It was trained without token types.
        tokens={"input_ids": tokens, "attention_mask": [1] * len(tokens)},
        first=len(head),
        characters=tuple(map(tuple, body["offset_mapping"])),
    )


def squad_input(tokenizer: Any, limit: int, question: str, text: str, *, tells_parts: bool) -> ReaderInput:
    """The input of a model trained on SQuAD: question and text, whose title SQuAD doesn't show.

    tells_parts: whether the model knows token types. limit, errors: as in `dpr_input`.
    """
    _check_room(len(_pair_tokens(tokenizer, question, "")), limit)
    both = tokenizer(
        [question],
        [text],
        truncation="only_second",
        max_length=limit,
        return_offsets_mapping=True,
        return_token_type_ids=tells_parts,
    )
    (characters,) = both.pop("offset_mapping")
    of_text = [place for place, part in enumerate(both.sequence_ids(0)) if part == 1]
    tokens: dict[str, list[int]] = {name: rows[0] for name, rows in both.items()}
    return ReaderInput(
        tokens=tokens,
        first=of_text[0] if of_text else 0,
        characters=tuple(tuple(characters[place]) for place in of_text),
        null=_place(tokens["input_ids"], tokenizer.cls_token_id),
    )


def _pair_tokens(tokenizer: Any, one: str, other: str) -> list[int]:
    # Lists of one: of two strings, transformers takes an empty second one for none and leaves out its mark.
    (tokens,) = tokenizer([one], [other])["input_ids"]
    return list(tokens)


def _place(tokens: list[int], token: int | None) -> int:
    """Where a token stands, which most models begin with and XLNet ends with."""
    return tokens.index(token) if token in tokens else 0


def _check_room(used: int, limit: int) -> None:
    if used >= limit:
        raise PromptTooLongError(f"the reader takes {limit} tokens, which leaves none for a paragraph")


Asked = tuple[str, str, str]
"""A question, and a paragraph's title and text."""


class TransformersExtractor(DeviceReader[Asked, Extracted]):
    """A reader in a folder saved by transformers; see `DeviceReader` and `Extractor`.

    Its configuration tells which it is: of the type `dpr` a DPR reader, otherwise a model for question answering.
    path: its folder. A paragraph that is too long is cut at its end. Raises InputError, NotInstalledError.
    """

    def __init__(self, path: Path, identity: str, profile: Profile) -> None:
        with loading("transformers", path):
            self._is_dpr = AutoConfig.from_pretrained(path, local_files_only=True).model_type == "dpr"
        kind: Any = DPRReader if self._is_dpr else AutoModelForQuestionAnswering
        self._model, self._tokenizer = load(kind, path, "reader")
        if not self._tokenizer.is_fast:
            raise InputError(f"the tokenizer of {path} doesn't say where in a text its tokens are: take another model")
        self._tokenizer.padding_side = "right"
        self._tells_parts = getattr(self._model.config, "type_vocab_size", 0) > 1
        self._limit = most_tokens(self._model, self._tokenizer)
        super().__init__(identity, profile, TOKENS_AT_ONCE[self._model.device.type])

    def extract(self, extractions: Sequence[Extraction]) -> list[Extracted]:
        inputs = [(each.question, each.paragraph.title, each.paragraph.text) for each in extractions]
        with self._turn:
            answers = self._found(list(dict.fromkeys(inputs)))
        return [answers[each] for each in inputs]

    def _found(self, distinct: list[Asked]) -> dict[Asked, Extracted]:
        inputs = {each: self._input(*each) for each in distinct}
        return self._read_all(
            distinct,
            lambda each: len(inputs[each].tokens["input_ids"]),
            lambda batch: self._read(batch, [inputs[each] for each in batch]),
        )

    def _input(self, question: str, title: str, text: str) -> ReaderInput:
        if self._is_dpr:
            return dpr_input(self._tokenizer, self._limit, question, title, text)
        return squad_input(self._tokenizer, self._limit, question, text, tells_parts=self._tells_parts)

    def _read(self, batch: list[Asked], inputs: list[ReaderInput]) -> list[Extracted]:
        padded = self._tokenizer.pad([each.tokens for each in inputs], return_tensors="pt").to(self._model.device)
        with torch.inference_mode():
            output = self._model(**padded)
        logits = [output.start_logits, output.end_logits, *([output.relevance_logits] if self._is_dpr else [])]
        self._check(finite=all(bool(each.isfinite().all()) for each in logits))
        rows = zip(*(each.tolist() for each in logits), strict=True)
        return [_extracted(text, each, *row) for (_, _, text), each, row in zip(batch, inputs, rows, strict=True)]


def _extracted(
    text: str, reader_input: ReaderInput, starts: list[float], ends: list[float], relevance: float | None = None
) -> Extracted:
    """The answer by the logits of an input's tokens, behind which there may be padding's.

    relevance: a DPR reader's logit of the whole paragraph.
    """
    tokens = slice(reader_input.first, reader_input.first + len(reader_input.characters))
    span = best_span(starts[tokens], ends[tokens])
    if span is None:
        return Extracted(text="", confidence=rounded(relevance or 0.0, DECIMALS), start=0, end=0)
    first, last = span
    start, end = trimmed(text, (reader_input.characters[first][0], reader_input.characters[last][1]))
    score = starts[reader_input.first + first] + ends[reader_input.first + last]
    null = starts[reader_input.null] + ends[reader_input.null]
    confidence = rounded(score - null if relevance is None else relevance, DECIMALS)
    return Extracted(text=text[start:end], confidence=confidence, start=start, end=end)
