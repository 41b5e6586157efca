"""Extractors that transformers loads: DPR's readers, and models trained on SQuAD 2.0."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForQuestionAnswering, DPRReader

from cotrail.common.numbers import rounded
from cotrail.core.ports.extractor import DECIMALS, Extraction
from cotrail.core.ports.language_model import Profile
from cotrail.core.results import Extracted
from cotrail.engines.device_memory import in_batches
from cotrail.engines.extraction.inputs import ReaderInput, dpr_input, squad_input
from cotrail.engines.extraction.spans import best_span, trimmed
from cotrail.engines.model_folders import loading
from cotrail.engines.pair_models import TOKENS_AT_ONCE, load, most_tokens
from cotrail.errors import InputError, StepError

Asked = tuple[str, str, str]
"""A question, and a paragraph's title and text."""


class TransformersExtractor:
    """A reader in a folder saved by transformers, on a CUDA device or otherwise the CPU, in float32.

    Its configuration tells which it is: of the type `dpr` a DPR reader, otherwise a model for question answering.
    path, identity: its folder, and its identity.
    profile: `fast` reads paragraphs of similar lengths together; `deterministic` reads one at a time, so that its
        logits have the same bits with any other inputs beside it.
    A paragraph that is too long is cut at its end. Raises InputError, NotInstalledError.
    """

    def __init__(self, path: Path, identity: str, profile: Profile) -> None:
        self._identity = identity
        self._is_dpr = _model_type(path) == "dpr"
        kind: Any = DPRReader if self._is_dpr else AutoModelForQuestionAnswering
        self._model, self._tokenizer = load(kind, path, "reader")
        if not self._tokenizer.is_fast:
            raise InputError(f"the tokenizer of {path} doesn't say where in a text its tokens are: take another model")
        self._tokenizer.padding_side = "right"
        self._tells_parts = getattr(self._model.config, "type_vocab_size", 0) > 1
        self._limit = most_tokens(self._model, self._tokenizer)
        self._most = TOKENS_AT_ONCE[self._model.device.type] if profile == "fast" else 0
        self._turn = Lock()

    @property
    def identity(self) -> str:
        """See `Extractor`."""
        return self._identity

    def extract(self, extractions: Sequence[Extraction]) -> list[Extracted]:
        """See `Extractor`."""
        inputs = [(each.question, each.paragraph.title, each.paragraph.text) for each in extractions]
        with self._turn:
            answers = self._found(list(dict.fromkeys(inputs)))
        return [answers[each] for each in inputs]

    def _found(self, distinct: list[Asked]) -> dict[Asked, Extracted]:
        inputs = {each: self._input(*each) for each in distinct}
        answers: dict[Asked, Extracted] = {}

        def work(batch: list[Asked]) -> None:
            answers.update(zip(batch, self._read(batch, [inputs[each] for each in batch]), strict=True))

        in_batches(work, distinct, lambda each: len(inputs[each].tokens["input_ids"]), self._most)
        return answers

    def _input(self, question: str, title: str, text: str) -> ReaderInput:
        if self._is_dpr:
            return dpr_input(self._tokenizer, self._limit, question, title, text)
        return squad_input(self._tokenizer, self._limit, question, text, tells_parts=self._tells_parts)

    def _read(self, batch: list[Asked], inputs: list[ReaderInput]) -> list[Extracted]:
        padded = self._tokenizer.pad([each.tokens for each in inputs], return_tensors="pt").to(self._model.device)
        with torch.inference_mode():
            output = self._model(**padded)
        logits = [output.start_logits, output.end_logits, *([output.relevance_logits] if self._is_dpr else [])]
        if not all(bool(each.isfinite().all()) for each in logits):
            raise StepError(f"{self._identity} returns values that aren't numbers: its weights are broken")
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


def _model_type(path: Path) -> str:
    with loading("transformers", path):
        return str(AutoConfig.from_pretrained(path, local_files_only=True).model_type)
