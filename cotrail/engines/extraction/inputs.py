"""Question and paragraph as the inputs of a reader, put together as its family was trained."""

from typing import Any

from msgspec import Struct

from cotrail.engines.extraction.spans import Span
from cotrail.errors import PromptTooLongError


class ReaderInput(Struct, frozen=True, kw_only=True):
    """A question and a paragraph as a reader sees them.

    tokens: the model's inputs. first: where the paragraph's text begins among them; characters: where each of its
    tokens stands in it. null: the token by which a model trained on SQuAD 2.0 says that there is no answer.
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
    """The tokens of a pair with their marks."""
    # Lists of one: of two strings, transformers takes an empty second one for none and leaves out its mark.
    (tokens,) = tokenizer([one], [other])["input_ids"]
    return list(tokens)


def _place(tokens: list[int], token: int | None) -> int:
    """Where a token stands, which most models begin with and XLNet ends with."""
    return tokens.index(token) if token in tokens else 0


def _check_room(used: int, limit: int) -> None:
    if used >= limit:
        raise PromptTooLongError(f"the reader takes {limit} tokens, which leaves none for a paragraph")
