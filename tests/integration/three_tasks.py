"""A few questions of each task of Rethinking with Retrieval in their published form, and scripts for all its models.

Two of the three chains of every question agree on a wrong answer, and the evidence supports the third.
"""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

from cotrail.engines.knowledge.store import KnowledgeStore
from tests.faults.scripts import MODELS
from tests.faults.stacked import SAMPLE
from tests.unit.made_knowledge import animals, assertion, dump, minnesota

CHAINS = 3
EVERYTHING = ""
"""The content of every premise, in any wording."""

ASKED = {"strategyqa": 4, "tempquestions": 2, "infotabs": 3}
"""Questions per file."""

EXPERIMENT = f"""
protocol = "rethinking"
name = "{{name}}"
models = ["scripted"]
embedder = "scripted"
entailer = "scripted"
chains = {CHAINS}

[datasets.strategyqa]
questions = "strategyqa.json"
corpus = "facts"
evidence = "evidence"
demonstrations = "demonstrations.txt"

[datasets.tempquestions]
questions = "tempquestions.json"
demonstrations = "demonstrations.txt"

[datasets.infotabs]
questions = "data/maindata/infotabs_dev.tsv"
demonstrations = "demonstrations.txt"
"""


class Script:
    """The models' texts, question by question."""

    def __init__(self) -> None:
        self.questions: dict[str, Any] = {}
        self.judgements: dict[str, dict[str, dict[str, float]]] = {}

    def add(self, question: str, fact: str, right: str, wrong: str, by: str) -> None:
        """Adds a question that is answered wrongly at once; by: the evidence, as an entailer's script names it."""
        error = f"Nobody knows whether {fact[0].lower()}{fact[1:]}"
        astray = f"{error} So the answer is {wrong}."
        self.questions[question] = {"answer": wrong, "samples": [astray, f"{fact} So the answer is {right}.", astray]}
        self.judgements.setdefault(by, {}).update({fact: {"entailment": 0.95}, error: {"contradiction": 0.9}})


def write_three_tasks(home: Path) -> None:
    """All files of an experiment in a home whose stack isn't up yet; its corpora are `facts.jsonl`."""
    script = Script()
    _strategyqa(home, script)
    _tempquestions(home, script)
    _infotabs(home, script)
    unknown = {"answer": "unknown"}
    written = {"name": "tasks", "questions": script.questions, "default": unknown}
    judged = {"judgements": script.judgements, "default": {"contradiction": 0.3}}
    for name, content in (("script", written), ("similarities", {"default": 0.2}), ("judgements", judged)):
        (home / f"{name}.json").write_text(json.dumps(content))
    (home / "models.toml").write_text(MODELS)
    shutil.copy(SAMPLE / "yes_no_demonstrations.txt", home / "demonstrations.txt")


def _strategyqa(home: Path, script: Script) -> None:
    asked, paragraphs = [], []
    for number in range(ASKED["strategyqa"]):
        title, fact = f"Lake {number + 11}", f"Lake {number + 11} is deeper than ten metres."
        question = f"Could a tower of ten metres vanish in lake {number + 11}?"
        script.add(question, fact, "yes", "no", title)
        id_ = f"{title}-1"
        asked.append(
            {"qid": f"s{number}", "question": question, "answer": True, "facts": [fact], "evidence": [[[[id_]]]]}
        )
        paragraphs.append({"id": id_, "title": title, "text": f"{title} is {number + 40} metres deep."})
    (home / "strategyqa.json").write_text(json.dumps(asked))
    (home / "facts.jsonl").write_text("".join(f"{json.dumps(paragraph)}\n" for paragraph in paragraphs))


def _tempquestions(home: Path, script: Script) -> None:
    asked = []
    for number in range(ASKED["tempquestions"]):
        question = f"who was governor of minnesota when shanghai noon was released, part {number}?"
        fact = "Tim Pawlenty was governor of Minnesota when Shanghai Noon was released."
        script.add(question, fact, "Tim Pawlenty", "Tim Walz", EVERYTHING)
        asked.append({"Id": 100 + number, "Question": question, "Gold answer": ["Tim Pawlenty"], "Type": ["Implicit"]})
    (home / "tempquestions.json").write_text(json.dumps(asked))
    (home / "dump.json").write_text(dump(minnesota()))
    KnowledgeStore(home / "knowledge").build("wikidata", [home / "dump.json"])


def _infotabs(home: Path, script: Script) -> None:
    main, tables = home / "data" / "maindata", home / "data" / "tables" / "json"
    for folder in (main, tables):
        folder.mkdir(parents=True)
    (tables / "T1.json").write_text(json.dumps({"title": ["Jean"], "Breed": ["Collie"]}))
    lines = ["annotater_id\ttable_id\thypothesis\tlabel"]
    for number in range(ASKED["infotabs"]):
        hypothesis = f"Jean is a dog of kind {number}."
        script.add(f"{hypothesis} True or False?", f"Kind {number} is a kind of collie.", "true", "false", "Collie")
        lines.append(f"A\tT1\t{hypothesis}\tE")
    (main / "infotabs_dev.tsv").write_text("\n".join(lines) + "\n")
    store = KnowledgeStore(home / "knowledge")
    store.build("wordnet", [animals(home / "wordnet")])
    (home / "assertions.csv.gz").write_bytes(gzip.compress(assertion("RelatedTo", "collie", "dog").encode()))
    store.build("conceptnet", [home / "assertions.csv.gz"])
