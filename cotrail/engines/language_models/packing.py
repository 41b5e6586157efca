"""Prompt packing: fits a prompt into the context window by leaving out whole parts.

The limits of a prompt's pieces in tokens, and of all of them together: what is cut (Search-R1, `generation.py`).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, groupby

from msgspec import Struct

from cotrail.core.generation import Cut
from cotrail.core.prompts import Piece, Prompt
from cotrail.errors import PromptTooLongError

CountTokens = Callable[[str], int]


def limited(prompt: Prompt, count_tokens: CountTokens) -> tuple[Cut, ...]:
    """What is cut of the prompt's pieces: first each to its limit, then all to the prompt's window.

    Tokens are counted piece by piece, so that a later prompt with the same pieces is cut alike, and the marks that a
    chat template sets between turns don't count.
    """
    if prompt.window is None and all(_limit(piece) is None for piece in prompt.pieces):
        return ()
    kept = {cut.place: cut for cut in _to_own_limits(prompt, count_tokens)}
    if prompt.window is not None:
        kept |= {cut.place: cut for cut in _to_window(prompt, kept, prompt.window, count_tokens)}
    return tuple(kept[place] for place in sorted(kept))


def _limit(piece: Piece) -> int | None:
    return getattr(piece, "tokens", None)


def _to_own_limits(prompt: Prompt, count_tokens: CountTokens) -> Iterator[Cut]:
    place = 0
    for turn in prompt.turns:
        for limit, group in groupby(turn.pieces, _limit):
            left = limit
            for piece in group:
                if left is not None:
                    kept = _most_characters(piece.text, left, count_tokens)
                    left -= count_tokens(piece.text[:kept])
                    if kept < len(piece.text):
                        yield Cut(place, 0, kept)
                place += 1


def _to_window(prompt: Prompt, cut: dict[int, Cut], window: int, count_tokens: CountTokens) -> Iterator[Cut]:
    left = window
    for place, piece in reversed(list(enumerate(prompt.pieces))):
        end = cut[place].end if place in cut else len(piece.text)
        text = piece.text[:end]
        tokens = count_tokens(text)
        if tokens > left:
            yield Cut(place, end - _most_characters(text, left, count_tokens, from_end=True), end)
        left = max(left - tokens, 0)


def _most_characters(text: str, limit: int, count_tokens: CountTokens, *, from_end: bool = False) -> int:
    """How many characters of a text, from its beginning or its end, have no more tokens than the limit."""
    if limit <= 0:
        return 0

    def tokens(number: int) -> int:
        return count_tokens(text[len(text) - number :] if from_end else text[:number])

    if tokens(len(text)) <= limit:
        return len(text)
    # By bisection: each count is a call of the tokenizer, for a served model perhaps a request.
    number = max(bisect_right(range(len(text) + 1), limit, key=tokens) - 1, 0)
    # A longer piece of a text has hardly ever fewer tokens, but the search may have met one that has.
    while tokens(number) > limit:
        number -= 1
    return number


LOADING_RESERVE = 300
"""Tokens that the authors' code reserves for the output when it loads demonstrations (`read_prompt`)."""


class _Room(Struct, frozen=True):
    """A context window in tokens, of which `reserved` are for the output."""

    count_tokens: Callable[[str], int]
    tokens: Callable[[Prompt], int]
    context: int
    reserved: int

    @property
    def limit(self) -> int:
        return self.context - self.reserved

    def fits(self, prompt: Prompt) -> bool:
        return self.tokens(prompt) <= self.limit

    def demonstration_sizes(self, prompt: Prompt) -> list[int]:
        shown = prompt.demonstrated
        if shown is None:
            return []
        return [self.count_tokens(each.render(shown.layout)) for each in shown.demonstrations.items]


def pack(
    prompt: Prompt,
    count_tokens: Callable[[str], int],
    context: int,
    max_tokens: int,
    tokens: Callable[[Prompt], int] | None = None,
) -> Prompt:
    """The prompt with as many parts as fit the context with `max_tokens`; parts are cut to limits of their own alone.

    Demonstrations are dropped first, as the prompt's `drop` says. `last` drops the last ones, down to an even number or
    one. `first` drops the first ones, as the authors' code does at each call. `released` follows their code for models
    with a fixed context: the last ones are dropped until the demonstrations, once more the longest of them, and 300
    tokens fit the context, and then the first ones until the prompt fits. Their code leaves at least one token of the
    context unused and counts each part by itself, but nothing for what stands between two of them, and so do `first`
    and `released`: their prompts may leave a little less than `max_tokens` of the context, see `output_tokens`.

    Other parts are dropped only when no demonstration is left, those that yield most first, and of equal ones the
    latest: the earliest paragraphs were found with the question itself, and the prompts of one question then share a
    prefix.

    count_tokens: called for each part, for an estimate that a cache makes cheap; tokens: called for the whole prompt
        until the estimate is settled, usually once or twice; by default it counts the tokens of the rendered text.
    Raises PromptTooLongError where what is never left out doesn't fit, or not even the shortest demonstration fits
    next to it.
    """
    prompt = prompt.cut(limited(prompt, count_tokens))
    # The authors' code requires one token less than the context.
    reserved = max_tokens if prompt.drop == "last" else max_tokens + 1
    room = _Room(count_tokens, tokens or (lambda shown: count_tokens(shown.render())), context, reserved)
    # Demonstrations go before paragraphs: some are kept only where all paragraphs fit without any.
    whole = room.fits(prompt.keep(0, len(prompt.yielding)))
    packed = _with_demonstrations(prompt, room) if whole else _with_pieces(prompt, room)
    # A few-shot run would silently become a zero-shot one.
    if prompt.demonstrations.items and not packed.demonstrations.items:
        _check_one_fits(prompt, room)
    return packed


def output_tokens(prompt_tokens: int, context: int, max_tokens: int) -> int:
    """The most tokens that can be written behind a packed prompt."""
    return min(max_tokens, context - prompt_tokens)


def _with_demonstrations(prompt: Prompt, room: _Room) -> Prompt:
    """The prompt with all paragraphs and as many demonstrations as fit together with them."""
    sizes = room.demonstration_sizes(prompt)
    if prompt.drop == "released":
        sizes = sizes[: _loaded(sizes, room.context)]
    loaded = len(sizes)

    def kept(number: int) -> Prompt:
        return prompt.keep(number, len(prompt.yielding), 0 if prompt.drop == "last" else loaded - number)

    left = room.limit - room.tokens(kept(0))
    if prompt.drop == "last":
        number = _most(sizes, left, lambda number: room.fits(kept(number)))
        # Whatever follows the demonstrations is read again when their number changes; in steps of two that happens half
        # as often, and the prefix cache hits more.
        return kept(number if number == loaded or number <= 1 else number - number % 2)
    number = _added_up(reversed(sizes), left)
    # What stands between the parts takes its tokens all the same, and the answer needs one.
    while number and room.tokens(kept(number)) >= room.context:
        number -= 1
    return kept(number)


def _with_pieces(prompt: Prompt, room: _Room) -> Prompt:
    """The prompt without demonstrations and with as many of the pieces that may be left out as fit."""
    bare = prompt.keep(0, 0)
    if not room.fits(bare):
        raise PromptTooLongError(
            f"the parts of the prompt that are never left out take {room.tokens(bare)} tokens, and the context has "
            f"room for {room.limit}: take a model with a longer context, or fewer tokens a generation"
        )
    sizes = [room.count_tokens(piece.text) for piece in prompt.yielding]
    left = room.limit - room.tokens(bare)
    return prompt.keep(0, _most(sizes, left, lambda number: room.fits(prompt.keep(0, number))))


def _loaded(sizes: Sequence[int], context: int) -> int:
    """The number of demonstrations that the authors' code loads, from the front; a single one is taken as it is."""
    number = len(sizes)
    if number == 1:
        return number
    while number and sum(sizes[:number]) + max(sizes[:number]) + LOADING_RESERVE > context:
        number -= 1
    return number


def _check_one_fits(prompt: Prompt, room: _Room) -> None:
    sizes = room.demonstration_sizes(prompt)
    shortest = sizes.index(min(sizes))
    alone = prompt.without_written().keep(1, 0, shortest)
    if not room.fits(alone):
        raise PromptTooLongError(
            f"the shortest of {len(sizes)} demonstrations and the question take {room.tokens(alone)} tokens without "
            f"any paragraph, and the context has room for {room.limit}: take a model with a longer context, shorter "
            "demonstrations, or none"
        )


def _added_up(sizes: Iterable[int], room: int) -> int:
    return sum(total <= room for total in accumulate(sizes))


def _most(sizes: Sequence[int], room: int, fits: Callable[[int], bool]) -> int:
    """The number of parts that fit, from the front. `sizes` is an estimate, `fits` decides; no parts at all do fit."""
    # The sizes of parts don't add up exactly: tokens may span the boundary between two parts.
    number = _added_up(sizes, room)
    if fits(number):
        while number < len(sizes) and fits(number + 1):
            number += 1
        return number
    while not fits(number):
        number -= 1
    return number
