"""Drafts for speculative decoding from chains of thought that the model continued ahead of time.

A reason step keeps the first sentence, and the next step asks for the second one with more paragraphs. While a row of
the batch would be idle, the model continues the chain anyway; often the next sentence turns out the same.
"""

from collections import OrderedDict

from cotrail.engines.language_models.transformers.request import Request

EXTRA_TOKENS = 64
"""Tokens written beyond what was asked for."""

MOST_CONTINUATIONS = 1024
"""The most continuations kept, for questions that may not come back."""


class Continuations:
    """Texts that the model wrote beyond a request, by the chain that the next step's prompt will have."""

    def __init__(self) -> None:
        self._rests: OrderedDict[str, list[int]] = OrderedDict()

    def remember(self, rest: Request) -> None:
        """Keeps what a continuation has come to."""
        begun = rest.rest_of
        if begun is None:
            return
        text = begun.vocabulary.decode([*begun.written, *rest.written]).lstrip()
        # Encoded again: the next prompt joins the kept sentence and its continuation with a space of its own, so that
        # the tokens at the seam differ from those written.
        tokens = begun.vocabulary.encode(text[len(begun.kept) :], special=False)
        self._rests[begun.next_chain] = tokens
        if len(self._rests) > MOST_CONTINUATIONS:
            self._rests.popitem(last=False)

    def recall(self, request: Request) -> list[int]:
        """The expected tokens of a request, as far as they are known. They are returned once and then forgotten."""
        return self._rests.pop(request.chain, [])


def rest_of(request: Request, context: int) -> Request | None:
    """The request that continues a finished one; None where its line ended there or the context is full."""
    # What is sampled can't be expected to come again, nor what is thought before it.
    if not (request.chain and request.kept and request.sampler.greedy) or request.thinking.thought_tokens:
        return None
    tokens = [*request.tokens, *request.written]
    behind = request.text.lstrip()[len(request.kept) :]
    room = min(EXTRA_TOKENS, context - len(tokens))
    if not behind.strip() or "\n" in behind or room < 1:
        return None
    rest = Request(tokens, request.vocabulary, "line", room, request.sampling, request.shared)
    rest.rest_of = request
    return rest
