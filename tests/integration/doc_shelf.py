"""The files that the documentation's pages name as the reader's own, each as small as it may be."""

import gzip
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.faults.stacked import ROOT, SAMPLE
from tests.unit.made_knowledge import animals, assertion, dump, item, property_
from tests.unit.test_agent_datasets import beir
from tests.unit.test_building import MAKERS
from tests.unit.test_datasets import hotpotqa, musique, strategyqa, wikimultihop

ASKED = 4
"""The questions of `questions.jsonl`."""

RUN = """
system = "ircot"
dataset = "jsonl"
questions = "questions.jsonl"
corpus = "mine"
demonstrations = "demonstrations.txt"
"""
AGENT = 'system = "search-o1"\ndataset = "jsonl"\nquestions = "questions.jsonl"\ncorpus = "mine"\n'
EXPERIMENT = """
protocol = "compare"
name = "small"
models = ["scripted"]
systems = ["one-step"]

[datasets.mine]
format = "jsonl"
questions = "questions.jsonl"
corpus = "mine"
demonstrations = "demonstrations.txt"
"""
NOTES = {
    "lighthouse.md": "# Sollen lighthouse\n\nThe Sollen lighthouse was built in 1871 by Marit Aune.\n",
    "aune.md": "# Marit Aune\n\nMarit Aune was an engineer born in Tarrow.\n",
}
SETS = ("q_389", "q_10344", "q_8776", "q_2466")
"""The ids of demonstrations that a page has."""

DEVELOPMENT: Mapping[str, list[dict[str, Any]]] = {
    "strategyqa": [strategyqa(), strategyqa(qid="q2", question="Is ink dry?")],
    "2wikimultihopqa": [wikimultihop(), wikimultihop(_id="q2", question="What dries?")],
    "hotpotqa": [hotpotqa(), hotpotqa(_id="q2", question="What dries?")],
}
"""The questions of `dev.json` by the dataset that a page names."""


RUBRIC = "is it a single phrase? brief: both. long: right, but more than a phrase. wrong: not right."
"""The end of a page's own rubric."""


def script_of(right: int) -> dict[str, Any]:
    """What a scripted model writes: the chains of the questions, of which the first are answered right."""
    asked = {
        each["question"]: {"sentences": each["chain"][:-1], "answer": each["answers"][0] if place < right else "nobody"}
        for place, each in enumerate(_lines(SAMPLE / "questions.jsonl"))
    }
    return {"name": "writer", "questions": asked, "default": {"answer": "unknown"}}


def judge() -> dict[str, Any]:
    """What a scripted judge writes: praise."""
    correct, brief = (
        {"answer": json.dumps({"reasoning": "So.", "verdict": verdict, "confidence": 95})}
        for verdict in ("correct", "brief")
    )
    return {"name": "judge", "questions": {RUBRIC: brief}, "default": correct}


def sample() -> list[dict[str, Any]]:
    """The first questions of the sample; their gold paragraphs are given by title and text."""
    paragraphs = {each["id"]: each for each in _lines(SAMPLE / "corpus.jsonl")}
    return [
        {**each, "gold": [{key: paragraphs[gold][key] for key in ("title", "text")} for gold in each["gold"]]}
        for each in _lines(SAMPLE / "questions.jsonl")[:ASKED]
    ]


def write_files(folder: Path) -> None:
    """Writes all of them into a folder."""
    questions = sample()
    gold = {each["text"] for question in questions for each in question["gold"]}
    dated: dict[str, Any] = {"lang": "en", "date": "2011-05-01", "year": 2005}
    paragraphs = [
        {**each, **dated}
        for place, each in enumerate(_lines(SAMPLE / "corpus.jsonl"))
        if each["text"] in gold or place % 20 == 0
    ]
    _write_lines(folder / "corpus.jsonl", paragraphs)
    _write_lines(folder / "wiki.jsonl", paragraphs[::-1])
    _write_lines(folder / "questions.jsonl", questions)
    _write_lines(folder / "capitals.jsonl", questions)
    searched = "<search> Ink </search><information> Doc 1(Title: Ink) It stains. </information><answer> ink </answer>"
    _write_lines(folder / "transcripts.jsonl", [{**each, "output": searched} for each in questions])
    (folder / "questions.csv").write_text("id,ask,solution\n1,Who built it?,Ada\n")
    shutil.copy(SAMPLE / "demonstrations.txt", folder)
    shutil.copy(SAMPLE / "short_demonstrations.txt", folder / "short.txt")
    shutil.copytree(SAMPLE, folder / "cotrail" / "sample", ignore=shutil.ignore_patterns("new_system"))
    for name, text in {"run": RUN, "agent": AGENT, "experiment": EXPERIMENT}.items():
        (folder / f"{name}.toml").write_text(text)
    (folder / "notes").mkdir()
    for name, text in NOTES.items():
        (folder / "notes" / name).write_text(text)
    page = (ROOT / "docs" / "own-systems.md").read_text()
    function = page.partition("@cotrail.system")[2].partition("asked = ")[0]
    (folder / "two_hops.py").write_text(f"import cotrail\n\n\n@cotrail.system{function}")
    _write_published(folder)
    _write_authors(folder)


def _write_published(folder: Path) -> None:
    """Files of datasets, of their corpora and of knowledge, in the forms in which they are published."""
    _write_lines(folder / "dev.jsonl", [musique(id="2hop__1_2"), musique(id="2hop__3_4", question="What dries?")])
    asked = [hotpotqa(_id=each, question=f"What stains paper {each}?") for each in (*SETS, "q5", "q6", "q7", "q8")]
    context = [["Ink", ["Ink stains.", " It dries."]], ["Paper", ["Pulp."]], ["Pen", ["A pen."]], ["Nib", ["A nib."]]]
    for name in ("train", "hotpot_train_v1.1", "hotpot_dev_distractor_v1"):
        (folder / f"{name}.json").write_text(json.dumps([{**each, "context": context} for each in asked]))
    beir(folder / "scifact")
    for dataset, name in {"hotpotqa": "", "2wikimultihopqa": "2wiki", "musique": "musique", "iirc": "iirc"}.items():
        (folder / name).mkdir(exist_ok=True)
        MAKERS[dataset](folder / name)
    (folder / "dump").rename(folder / "enwiki-20171001-pages-meta-current-withlinks-abstracts")
    animals(folder / "wordnet")
    _compress(
        folder / "wikidata-20260101-all.json.gz", dump([property_("P39", "position held"), item("Q1", "Curitiba")])
    )
    _compress(folder / "conceptnet-assertions-5.7.0.csv.gz", assertion("RelatedTo", "married", "spouse") + "\n")


def _write_authors(folder: Path) -> None:
    """Demonstrations under the names of IRCoT's authors, with the ids of a page."""
    ids = iter((*SETS, *(f"q_{number}" for number in range(20))))
    text = "".join(
        f'# METADATA: {{"qid": "{next(ids)}"}}\n' if line.startswith("# METADATA") else line
        for line in (SAMPLE / "demonstrations.txt").read_text().splitlines(keepends=True) * 4
    )
    prompts = folder / "prompts" / "hotpotqa"
    prompts.mkdir(parents=True)
    examples = {"webthink_simple6": "\nQuestion: Who?\n", "cotqa_simple6": "Question: Where?\n"}
    (folder / "prompts_naive.json").write_text(json.dumps(examples))
    (folder / "prompts.txt").write_text(text)
    (folder / "prompts" / "hotpotqa.txt").write_text(text)
    for shown in ("no_context", "gold_with_1_distractors_context"):
        for form in ("cot", "direct"):
            (prompts / f"{shown}_{form}_qa_codex.txt").write_text(text)


def _compress(file: Path, text: str) -> None:
    file.write_bytes(gzip.compress(text.encode()))


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def _write_lines(file: Path, records: Iterable[dict[str, Any]]) -> None:
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
