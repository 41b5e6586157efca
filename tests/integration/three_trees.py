"""Three questions in MuSiQue's form, and scripts of a model and a reader that make a tree of each.

The model is wrong about the first, which the reader corrects; right about the second, where the reader misleads it; and
doesn't know the third, which the reader completes.
"""

import json
from pathlib import Path
from typing import Any

RIVER, TOWER, NOVEL = "Which sea does Ostmark's river flow into?", "Who built Ulm's tower?", "Who wrote the novel Salt?"
DOCUMENTS = {
    "Ostmark": "Ostmark is crossed by the Vell.",
    "Vell": "Vell water ends in the Amber Sea.",
    "Red Tower": "Adam restored the Red Tower.",
    "Salt": "Salt is a novel by Nora Lund.",
}
ASKED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "2hop__1": (RIVER, "Amber Sea", ("Ostmark", "Vell")),
    "3hop1__2": (TOWER, "Eve", ("Red Tower",)),
    "2hop__3": (NOVEL, "Nora Lund", ("Salt",)),
}
"""Questions by id: their text, answer and gold titles."""

FIRST = {
    RIVER: """[Query 1]: What is Ostmark crossed by?
[Answer 1]: The Vell.
[Query 2]: Where does Vell water end?
[Answer 2]: In the Grey Sea.
[Final Content]: The Vell [1] ends in the Grey Sea [2]. So the answer is Grey Sea.""",
    TOWER: """[Query 1]: Who built the Red Tower?
[Answer 1]: Eve.
[Final Content]: Eve built it [1]. So the answer is Eve.""",
    NOVEL: "[Unsolved Query]: Who is the novel Salt by?",
}
"""The chains that the model writes by itself."""

TOLD = {
    RIVER: (
        "Vell",
        """[Query 1]: Where does Vell water end?
[Answer 1]: In the Amber Sea.
[Final Content]: Ostmark is crossed by the Vell [1], which ends in the Amber Sea [2]. So the answer is Amber Sea.""",
    ),
    TOWER: ("Red Tower", "[Final Content]: Adam built it [1]. So the answer is Adam."),
    NOVEL: ("Salt", "[Final Content]: It is by Nora Lund. So the answer is Nora Lund."),
}
"""What it writes once it has been shown a document, after feedback and as the final content."""

READ = {
    "What is Ostmark crossed by?": ("Ostmark", "Vell", 3.0),
    "Where does Vell water end?": ("Vell", "Amber Sea", 2.5),
    "Who built the Red Tower?": ("Red Tower", "Adam", 9.0),
    "Who is the novel Salt by?": ("Salt", "Nora Lund", -1.0),
}
"""What the reader reads from the document of a query, and how sure it is."""

MODELS = """
[models.scripted]
engine = "scripted"
path = "script.json"

[extractors.reader]
engine = "scripted"
path = "reader.json"
"""
EXPERIMENT = """
protocol = "searchain"
name = "trees"
models = ["scripted"]
extractor = "reader"

[settings.searchain]
reader = "extractor"

[datasets.musique]
questions = "musique.jsonl"
corpus = "wikipedia"
"""


def write_three_trees(home: Path) -> None:
    """All files of the experiment; its corpus is `corpus.jsonl`."""
    script: dict[str, Any] = {"name": "trees", "questions": {}}
    for question, (title, then) in TOLD.items():
        script["questions"][question] = {"answer": FIRST[question], "answers": {DOCUMENTS[title]: then}}
    answers = {query: {title: {"text": text, "confidence": sure}} for query, (title, text, sure) in READ.items()}
    for name, content in (("script", script), ("reader", {"answers": answers})):
        (home / f"{name}.json").write_text(json.dumps(content))
    paragraphs = [{"id": title, "title": title, "text": text} for title, text in DOCUMENTS.items()]
    for name, lines in (("corpus", paragraphs), ("musique", [_question(id_) for id_ in ASKED])):
        (home / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (home / "models.toml").write_text(MODELS)
    (home / "trees.toml").write_text(EXPERIMENT)


def _question(id_: str) -> dict[str, Any]:
    text, answer, gold = ASKED[id_]
    shown = [{"title": title, "paragraph_text": DOCUMENTS[title], "is_supporting": True} for title in gold]
    return {"id": id_, "question": text, "paragraphs": shown, "answer": answer, "answerable": True}
