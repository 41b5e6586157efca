"""The bundled sample as scripts of models and similarities, for IRCoT and for Rethinking with Retrieval."""

import json
from typing import Any

from tests.faults.stacked import SAMPLE

RUN = """
system = "rethinking"
dataset = "jsonl"
questions = "questions.jsonl"
corpus = "sample"
model = "scripted"
embedder = "scripted"
entailer = "scripted"
chains = 3
task = "temporal"
variant = "selection"

[settings]
knowledge = ["corpus"]
reading = {reader = "none"}
"""

MODELS = """
[models.scripted]
engine = "scripted"
path = "script.json"

[embedders.scripted]
engine = "scripted"
path = "similarities.json"

[entailers.scripted]
engine = "scripted"
path = "judgements.json"
"""


def sample() -> list[dict[str, Any]]:
    """The sample's questions, except one with a sentence that ends in an initial ("... King Benedict I.")."""
    read = [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text().splitlines()]
    return [question for question in read if question["id"] != "sample-25"]


def chains(question: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The true chain, one that begins correctly and goes wrong, and one that only guesses."""
    wrong = [question["chain"][0], f"{other['answers'][0]} is what it was.", other["chain"][-1]]
    return [" ".join(question["chain"]), " ".join(wrong), other["chain"][-1]]


def scripts() -> dict[str, object]:
    """The scripted models: facts are similar to their gold paragraphs and follow from them, and from nothing else."""
    questions = sample()
    others = [*questions[1:], questions[0]]
    titles = {p["id"]: p["title"] for p in map(json.loads, (SAMPLE / "corpus.jsonl").read_text().splitlines())}
    similarities: dict[str, dict[str, float]] = {}
    judgements: dict[str, dict[str, dict[str, float]]] = {}
    for question in questions:
        for fact, gold in zip(question["chain"], question["gold"], strict=False):
            similarities.setdefault(fact, {})[titles[gold]] = 0.9
            judgements.setdefault(titles[gold], {})[fact] = {"entailment": 0.95}
    written = {
        question["question"]: {
            "sentences": question["chain"],
            "answer": question["answers"][0],
            "samples": chains(question, other),
        }
        for question, other in zip(questions, others, strict=True)
    }
    return {
        "script.json": {"name": "sample", "questions": written},
        "similarities.json": {"similarities": similarities, "default": 0.2},
        "judgements.json": {"judgements": judgements, "default": {"contradiction": 0.3}},
    }
