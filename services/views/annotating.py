"""Annotation of sampled chains by a person, sentence by sentence; each mark is stored at once."""

from collections.abc import Sequence

from sqlalchemy import Engine

from cotrail.evaluation.metrics.factual_errors import SentenceMark, facts
from cotrail.models.commands.annotating import forget_annotation, record_annotations
from cotrail.models.queries.annotations import Chain, read_marks
from cotrail.services.views.annotations import Place
from cotrail.services.views.marking import Marking


class AnnotationSession(Marking[Place]):
    """The sentences that an annotator hasn't marked yet, one after the other."""

    def __init__(self, engine: Engine, run_id: str, annotator: str, chains: Sequence[Chain]) -> None:
        self._engine, self._run_id, self._annotator = engine, run_id, annotator
        self._chains = {chain.question_id: chain for chain in chains}
        with engine.connect() as connection:
            marked = {(mark.question_id, mark.position) for mark in read_marks(connection, run_id, annotator)}
        places = [(chain.question_id, position) for chain in chains for position in facts(chain.sentences)]
        super().__init__([place for place in places if place not in marked])

    def chain(self, question_id: str) -> Chain:
        """The chain of that question."""
        return self._chains[question_id]

    def mark(self, place: Place, note: str, *, is_true: bool) -> None:
        """Stores the judgement of a sentence, and passes on to the next one."""
        with self._engine.begin() as connection:
            record_annotations(connection, self._run_id, [self._mark(place, is_true=is_true, note=note)])
        self.skip()

    def undo(self) -> None:
        """Goes back to the sentence before, and takes its mark away."""
        if (place := self.back()) is not None:
            with self._engine.begin() as connection:
                forget_annotation(connection, self._run_id, self._mark(place, is_true=True))

    def _mark(self, place: Place, *, is_true: bool, note: str = "") -> SentenceMark:
        key, position = place
        return SentenceMark(question_id=key, position=position, annotator=self._annotator, is_true=is_true, note=note)
