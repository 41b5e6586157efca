"""Annotation of sampled chains by a person, sentence by sentence; each mark is stored at once."""

from collections.abc import Callable, Collection, Sequence

from cotrail.evaluation.metrics.factual_errors import SentenceMark, facts
from cotrail.services.views.annotations import Chain, Place
from cotrail.services.views.marking import Marking

Store = Callable[[SentenceMark], object]
"""Stores a mark, or takes one away."""


class AnnotationSession(Marking[Place]):
    """The sentences that an annotator hasn't marked yet, one after the other.

    marked: those that are; record, forget: store a mark, and take one away.
    """

    def __init__(
        self, annotator: str, chains: Sequence[Chain], marked: Collection[Place], record: Store, forget: Store
    ) -> None:
        self._annotator, self._record, self._forget = annotator, record, forget
        self._chains = {chain.question_id: chain for chain in chains}
        places = [(chain.question_id, position) for chain in chains for position in facts(chain.sentences)]
        super().__init__([place for place in places if place not in marked])

    def chain(self, question_id: str) -> Chain:
        """The chain of that question."""
        return self._chains[question_id]

    def mark(self, place: Place, note: str, *, is_true: bool) -> None:
        """Stores the judgement of a sentence, and passes on to the next one."""
        self._record(self._mark(place, is_true=is_true, note=note))
        self.skip()

    def undo(self) -> None:
        """Goes back to the sentence before, and takes its mark away."""
        if (place := self.back()) is not None:
            self._forget(self._mark(place, is_true=True))

    def _mark(self, place: Place, *, is_true: bool, note: str = "") -> SentenceMark:
        key, position = place
        return SentenceMark(question_id=key, position=position, annotator=self._annotator, is_true=is_true, note=note)
