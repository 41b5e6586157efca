"""The rest of a chain of thought, as a guess of the sentences to come.

A reason step keeps the first sentence, and the next step asks for the second one with more paragraphs. Where a row of
the batch would be idle, the model goes on writing meanwhile; often the next sentence turns out the same.
"""

from collections import OrderedDict

from cotrail.engines.language_models.transformers.request import Request

REST = 64
"""How many tokens are written beyond what was asked for."""

REMEMBERED = 1024
"""How many rests are kept for questions that may not come back."""


class Continuations:
    """What the model went on to write, by what a prompt's chain is then."""

    def __init__(self) -> None:
        self._rests: OrderedDict[str, list[int]] = OrderedDict()

    def remember(self, rest: Request) -> None:
        """Keeps what a rest came to, however far."""
        begun = rest.rest_of
        if begun is None:
            return
        text = begun.vocabulary.decode([*begun.written, *rest.written]).lstrip()
        tokens = begun.vocabulary.encode(text[len(begun.kept) :], special=False)
        self._rests[begun.next_chain] = tokens
        if len(self._rests) > REMEMBERED:
            self._rests.popitem(last=False)

    def recall(self, request: Request) -> list[int]:
        """What the model will write for a request, as far as it is known; it is asked for once."""
        return self._rests.pop(request.chain, [])


def rest_of(request: Request, context: int) -> Request | None:
    """The request that goes on where another one was enough; None where its line ended there or the context ends."""
    if not (request.chain and request.kept and request.sampler.greedy):
        return None
    tokens = [*request.tokens, *request.written]
    behind = request.text.lstrip()[len(request.kept) :]
    room = min(REST, context - len(tokens))
    if not behind.strip() or "\n" in behind or room < 1:
        return None
    rest = Request(tokens, request.vocabulary, "line", room, request.sampling, request.shared)
    rest.rest_of = request
    return rest
