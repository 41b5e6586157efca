"""The bundled sample as scripts of models and similarities, for all systems."""

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


def conversation(question: dict[str, Any], titles: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """What Search-in-the-Chain's model writes for a question, and what the reader reads for each of its queries.

    titles: of paragraphs, by id. For a fact the reader reads the title of its gold paragraph, which stands in it.

    The first chain goes wrong at the last fact, the second one leaves the last query unsolved, and the third one asks
    nothing new.
    """
    answer, facts = question["answers"][0], question["chain"][:-1]
    last = f"So, {question['question']}"
    gold = [titles[each] for each in question["gold"]]
    asked = zip(gold, facts, strict=True)
    queries = [*(f"{title}: is it so that {fact.removesuffix('.')}?" for title, fact in asked), last]
    read = dict(zip(queries, [*gold, answer], strict=True))
    said = zip(queries, [*facts, answer], strict=True)
    pairs = [f"[Query {n}]: {query}\n[Answer {n}]: {text}" for n, (query, text) in enumerate(said, start=1)]
    wrong = pairs[-2].replace(f"]: {facts[-1]}", "]: Nobody knows.")
    marked = [f"{fact.removesuffix('.')} [{n}]." for n, fact in enumerate(facts, start=1)]
    chains = [
        [*pairs[:-2], wrong, pairs[-1]],
        [*pairs[:-1], f"[Unsolved Query]: {last}"],
        [*pairs, f"[Final Content]: So the answer is {answer}."],
    ]
    final = f"[Final Content]: {' '.join(marked)} So the answer is {answer} [{len(pairs)}]."
    return ["\n".join(chain) for chain in chains] + [final], read


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
    written: dict[str, dict[str, Any]] = {}
    for question, other in zip(questions, others, strict=True):
        messages, read = conversation(question, titles)
        written |= {query: {"answer": text} for query, text in read.items()}
        written[question["question"]] = {
            "sentences": question["chain"],
            "answer": question["answers"][0],
            "samples": chains(question, other),
            "messages": messages,
        }
    return {
        "script.json": {"name": "sample", "questions": written},
        "similarities.json": {"similarities": similarities, "default": 0.2},
        "judgements.json": {"judgements": judgements, "default": {"contradiction": 0.3}},
    }
