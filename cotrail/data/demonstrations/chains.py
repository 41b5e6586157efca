"""Files of chains of thought by annotators: JSON Lines of `{"id": "...", "chain": ["sentence", ...]}`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.json_files import decode, lines
from cotrail.core.answer_extraction import stated_answer
from cotrail.data.datasets.annotated import AnnotatedQuestion
from cotrail.errors import DemonstrationError

ChainSentences = tuple[str, ...]
"""The sentences in their order; the last one states the answer."""


class _AnnotatedLine(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    chain: ChainSentences


def read_chains(path: Path) -> dict[str, ChainSentences]:
    """Read the chains of a file by question id, in its order; DemonstrationError names the line that can't be used."""
    chains: dict[str, ChainSentences] = {}
    for place, raw in lines(path, DemonstrationError):
        line = decode(raw, _AnnotatedLine, place, DemonstrationError)
        if line.id in chains:
            raise DemonstrationError(f"{place}: the question {line.id!r} was annotated before; leave one chain for it")
        answer_of(line.chain, place)
        chains[line.id] = line.chain
    if not chains:
        raise DemonstrationError(f'{path} holds no annotations: give lines of {{"id": "...", "chain": ["..."]}}')
    return chains


def answer_of(chain: ChainSentences, place: str) -> str:
    """The answer that the chain's last sentence states; DemonstrationError, with the place, if it states none."""
    if not chain or not all(sentence.strip() for sentence in chain):
        raise DemonstrationError(f"{place}: the chain or one of its sentences is empty; fill it in or take it out")
    answer = stated_answer(" ".join(chain[-1].split()))
    if answer is None:
        raise DemonstrationError(
            f"{place}: the last sentence, {chain[-1][:60]!r}, states no answer; end the chain in a sentence such as "
            "'So the answer is: 1882.'"
        )
    return answer


def with_chains(
    questions: Sequence[AnnotatedQuestion], chains: Mapping[str, ChainSentences], path: Path
) -> tuple[AnnotatedQuestion, ...]:
    """Attach the chains of the file `path` to their questions; only questions with a chain, in the file's order.

    Raises DemonstrationError, which lists the ids of unknown questions.
    """
    by_id = {each.question.id: each for each in questions}
    if unknown := [repr(id_) for id_ in chains if id_ not in by_id]:
        raise DemonstrationError(
            f"{path}: the question file has no question {', '.join(unknown)}; correct the ids or give the file that "
            "the annotated questions are from"
        )
    return tuple(replace(by_id[id_], chain=chain) for id_, chain in chains.items())
