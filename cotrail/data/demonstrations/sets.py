"""Demonstration sets: drawn from a file's demonstrations by a seed, or given as lists of ids (IRCoT, section 4.1)."""

import hashlib
import tomllib
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from cotrail.common.input_limits import MAX_SMALL_FILE_BYTES, read_whole
from cotrail.common.json_files import problem_of
from cotrail.common.text_files import opened
from cotrail.core.demonstrations import Demonstrations
from cotrail.errors import DemonstrationError

RELEASED = "released"
"""Name of the sets that the authors of IRCoT used, to be given instead of a file of lists."""

FILE = Path(__file__).with_name("released_sets.toml")

Ids = Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=1)]
Lists = Annotated[tuple[Ids, ...], Meta(min_length=1)]


def demonstration_sets(
    demonstrations: Demonstrations, seed: int, sets: int = 3, size: int = 15
) -> tuple[Demonstrations, ...]:
    """Draw `sets` sets of `size` demonstrations each; the order of the draw is that of the prompt.

    Set n depends on the ids, the seed and n alone, so all forms of the same demonstrations give the same sets, however
    their files are ordered. If there are exactly `size` demonstrations, each set is all of them in their own order.
    Raises DemonstrationError where there are fewer.
    """
    if len(demonstrations.items) < size:
        raise DemonstrationError(
            f"a set of {size} demonstrations can't be drawn from {len(demonstrations.items)}; ask for smaller sets, or "
            "give more demonstrations"
        )
    if len(demonstrations.items) == size:
        return (demonstrations,) * sets
    return tuple(_drawn(demonstrations, f"{seed}\0{number}", size) for number in range(1, sets + 1))


def listed_set(demonstrations: Demonstrations, lists: str, number: int) -> Demonstrations:
    """Select a listed set: the demonstrations of its ids, in the order of the list; number: from 1.

    lists: a JSON file of lists of ids, or `released` for the authors' sets of the demonstrations' dataset.
    Raises DemonstrationError where the set or one of its demonstrations doesn't exist.
    """
    by_id = {each.id: each for each in demonstrations.items}
    sets = _released(frozenset(by_id)) if lists == RELEASED else read_sets(Path(lists))
    if number > len(sets):
        raise DemonstrationError(f"there is no set {number} in {lists}, which has {len(sets)}")
    ids = sets[number - 1]
    for id_ in ids:
        if id_ not in by_id:
            raise DemonstrationError(f"set {number} of {lists} has the id {id_!r}, and no demonstration has it")
    return Demonstrations(items=tuple(by_id[id_] for id_ in ids))


def read_sets(path: Path) -> Lists:
    """Read the lists of ids of a JSON file, `[["id", ...], ...]`; DemonstrationError says what is wrong with it."""
    with opened(path, DemonstrationError) as file:
        content = read_whole(file, str(path), DemonstrationError, MAX_SMALL_FILE_BYTES)
    try:
        sets = msgspec.json.decode(content, type=Lists)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DemonstrationError(
            f'{path} isn\'t a JSON list of lists of ids, as [["q1", "q2"], ["q3"]]: {problem_of(error, content, Lists)}'
        ) from error
    for number, ids in enumerate(sets, start=1):
        if twice := next((id_ for id_ in ids if ids.count(id_) > 1), None):
            raise DemonstrationError(f"{path}: set {number} has the id {twice!r} twice")
    return sets


def _released(ids: frozenset[str]) -> Lists:
    """The authors' sets of the dataset that contains any of these ids."""
    by_dataset = _read_released()
    for lists in by_dataset.values():
        if not ids.isdisjoint(chain.from_iterable(lists)):
            return lists
    raise DemonstrationError(
        f"none of these demonstrations is in the released sets, which there are for {', '.join(by_dataset)}"
    )


@cache
def _read_released() -> dict[str, Lists]:
    return msgspec.convert(tomllib.loads(FILE.read_text("utf-8")), dict[str, Lists])


def _drawn(demonstrations: Demonstrations, salt: str, size: int) -> Demonstrations:
    order = sorted(demonstrations.items, key=lambda each: hashlib.sha256(f"{salt}\0{each.id}".encode()).digest())
    return Demonstrations(items=tuple(order[:size]))
