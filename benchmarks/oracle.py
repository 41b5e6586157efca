"""Upper bound of interleaved retrieval: IRCoT against one-step retrieval, with an oracle in place of the model.

`python -m benchmarks.oracle --questions PATH --corpus PATH [--corpus PATH ...] [--output FILE]`. The oracle writes the
gold chain of MuSiQue's questions (`cotrail.engines.language_models.oracle`), so that only retrieval can fail.
It needs one process and no servers: `cotrail.core.replay.advance` drives the systems.
"""

import json
import platform
import tempfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from benchmarks.actions import prompted
from cotrail.core.actions.registry import kind_of
from cotrail.core.actions.retrieve import Retrieve, retrieved
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.history import Failed, Finished, Recorded
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.ports.retriever import Corpus, SearchRequest
from cotrail.core.questions import Paragraph, Question
from cotrail.core.replay import advance
from cotrail.core.results import Result
from cotrail.core.system import Action, Answer
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_questions
from cotrail.data.datasets.spec import Scoring
from cotrail.engines.language_models.oracle import oracle_script
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.engines.retrieval.stores import build_index, open_index
from cotrail.evaluation.metrics.corpus_coverage import coverage
from cotrail.evaluation.metrics.supporting_paragraphs import support_scores
from cotrail.systems.ircot import IRCoTSettings, OneStepSettings
from cotrail.systems.parts.reading import ReaderSettings
from cotrail.systems.parts.retrieval import RetrievalSettings
from cotrail.systems.registry import find_system

COUNTS = {"ircot": (2, 4, 6, 8), "one-step": (5, 7, 9, 11, 13, 15)}
"""Values of K that the paper tries for each system (IRCoT, section 4.1)."""

SHOTS = {AnswerForm.COT: Demonstrations()}
NO_READER = ReaderSettings(reader="none")
ALL_OF_A_TITLE = 100_000
"""Larger than the number of paragraphs of any page."""

MEASURED = ("cotrail", "tantivy", "msgspec", "rapidfuzz")


class OracleExecutor(Struct, frozen=True):
    """Executes the systems' actions in this process."""

    oracle: ScriptedModel
    retriever: Corpus

    @property
    def binding(self) -> Binding:
        """The binding that a run with these would pin."""
        corpora = {"corpus": self.retriever.revision}
        return Binding(model=self.oracle.identity, profile="oracle", temperature=0.0, seed=0, corpora=corpora)

    def paragraphs_of_title(self, title: str) -> Iterable[Paragraph]:
        """All paragraphs with exactly this title."""
        request = SearchRequest(query=title, count=ALL_OF_A_TITLE, titles=(title,))
        return (hit.paragraph for hit in self.retriever.search(request))

    def result(self, action: Action) -> Result:
        """The action's result."""
        if isinstance(action, Retrieve):
            return retrieved(self.retriever, action)
        generation = prompted(action)
        return self.oracle.generate(GenerationRequest(generation.prompt, generation.until, generation.max_tokens))

    def answer(self, system: str, question: Question, count: int) -> Answer:
        """The system's answer to a question with K = `count`."""
        spec, history = find_system(system), list[Recorded]()
        while True:
            following = advance(lambda: spec.open(question, SHOTS, _settings(system, count)), history, self.binding)
            match following:
                case Finished(answer):
                    return answer
                case Failed(failure):
                    raise SystemExit(f"{system} fails on {question.text!r}: {failure.type}, {failure.message}")
            for step in following.steps:
                recorded = Recorded(
                    kind=kind_of(step.action).name, fingerprint=step.fingerprint, outcome=self.result(step.action)
                )
                history.append(recorded)


def _settings(system: str, count: int) -> IRCoTSettings | OneStepSettings:
    retrieval = RetrievalSettings(retrieval_count=count)
    settings = IRCoTSettings if system == "ircot" else OneStepSettings
    return settings(retrieval=retrieval, reading=NO_READER)


def main(
    questions: Annotated[Path, typer.Option(help="A training or development file of MuSiQue.")],
    corpus: Annotated[list[Path], typer.Option(help="A file of paragraphs; may be given again.")],
    *,
    output: Annotated[Path | None, typer.Option(help="Write the numbers into this JSON file as well.")] = None,
) -> None:
    """Run both systems over the questions for every K; print the mean paragraph recall."""
    asked, oracle = load_questions("musique", questions), ScriptedModel(oracle_script(questions))
    with tempfile.TemporaryDirectory(prefix="cotrail-benchmark-") as folder:
        manifest = build_index(read_corpus(corpus), Path(folder))
        world = OracleExecutor(oracle, open_index(Path(folder)))
        held = coverage(asked, world.paragraphs_of_title, world.retriever.paragraphs)
        rows = [_row(world, asked, system, count) for system, counts in COUNTS.items() for count in counts]
    report = {
        "questions": len(asked),
        "paragraphs": manifest.paragraphs,
        "gold_paragraphs": held.gold,
        "gold_paragraphs_not_in_corpus": len(held.missing),
        "systems": rows,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in MEASURED},
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(report)


def _row(world: OracleExecutor, questions: Iterable[Question], system: str, count: int) -> dict[str, Any]:
    answered = [(question, world.answer(system, question, count)) for question in questions]
    rule = Scoring("squad", any_script=True)
    supports = [support_scores(rule, answer.paragraphs, question.gold) for question, answer in answered]
    recalls = [each.recall if each else 0.0 for each in supports]
    collected = [len(answer.paragraphs) for _, answer in answered]
    return {
        "system": system,
        "retrieval_count": count,
        "mean_recall": round(fmean(recalls), 4),
        "mean_paragraphs": round(fmean(collected), 2),
        "recalls": [round(recall, 4) for recall in recalls],
        "collected": collected,
    }


def _print(report: dict[str, Any]) -> None:
    title = f"{report['questions']} questions, {report['paragraphs']} paragraphs"
    table = Table("", "K", "paragraph recall", "paragraphs collected", title=title)
    for row in report["systems"]:
        recall, collected = f"{100 * row['mean_recall']:.1f}", f"{row['mean_paragraphs']:.1f}"
        table.add_row(row["system"], str(row["retrieval_count"]), recall, collected)
    Console().print(table)
    if missing := report["gold_paragraphs_not_in_corpus"]:
        print(f"{missing} of {report['gold_paragraphs']} gold paragraphs aren't in the corpus")


if __name__ == "__main__":
    typer.run(main)
