"""Records the official evaluation scripts' scores of the made-up cases.

    python -m tests.unit.metrics.record HOTPOTQA TWOWIKI MUSIQUE IRCOT [--seed N] [--count N] [--output FOLDER]

HOTPOTQA, TWOWIKI: `hotpot_evaluate_v1.py` of hotpotqa/hotpot and `2wikimultihop_evaluate_v1.1.py` of
Alab-NII/2wikimultihop. MUSIQUE, IRCOT: checkouts of StonyBrookNLP/musique and StonyBrookNLP/ircot.

The scripts are run unchanged. From those of IRCoT with large dependencies, only the functions needed are extracted.
"""

import argparse
import ast
import contextlib
import gzip
import hashlib
import importlib
import importlib.util
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import ftfy
import msgspec

from tests.unit.metrics.cases import SpanCase, SupportCase, WordCase, span_cases, support_cases, word_cases

SEED, COUNT = 20230709, 3000


class Scripts:
    """The official scripts, loaded."""

    def __init__(self, hotpotqa: Path, two_wiki: Path, musique: Path, ircot: Path) -> None:
        sys.modules.setdefault("ujson", json)  # two of the scripts read their files with it
        self.hotpotqa = _load(hotpotqa, "hotpotqa_script")
        self.two_wiki = _load(two_wiki, "two_wiki_script")
        self.musique = _package(musique, "evaluate_v1.0.py", "metrics.answer")
        self.drop = _package(ircot, "", "metrics.drop_answer_em_f1").DropAnswerEmAndF1
        self.support = importlib.import_module("metrics.support_em_f1").SupportEmF1Metric
        self.answer_support = importlib.import_module("metrics.answer_support_recall").AnswerSupportRecallMetric
        known = {
            "DropAnswerEmAndF1": self.drop,
            "SupportEmF1Metric": self.support,
            "AnswerSupportRecallMetric": self.answer_support,
        }
        self.evaluate = _take(ircot / "evaluate.py", {"answer_extractor", "evaluate_by_dicts"}, known)
        readers = ircot / "commaqa" / "inference" / "dataset_readers.py"
        self.identify = _take(readers, {"get_pid_for_title_paragraph_text"}, {})


def _load(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _package(folder: Path, script: str, module: str) -> Any:
    """A module of a checkout, or the script there that imports it; two checkouts have a package `metrics`."""
    for name in [name for name in sys.modules if name.split(".")[0] == "metrics"]:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    try:
        loaded: ModuleType = importlib.import_module(module)
        return _load(folder / script, script) if script else loaded
    finally:
        if script:
            sys.path.remove(str(folder))


def _take(path: Path, functions: set[str], known: dict[str, Any]) -> Any:
    """Functions of a file whose other imports aren't needed."""
    tree = ast.parse(path.read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in functions]
    module = ModuleType(path.stem)
    module.__dict__.update({"re": re, "ftfy": ftfy, "hashlib": hashlib, "Dict": dict, "Any": Any, **known})
    exec(compile(tree, str(path), "exec"), module.__dict__)
    return module


def of_words(scripts: Scripts, case: WordCase) -> dict[str, Any]:
    """Each script's scores of a case; HotpotQA's of the main answer alone, 2Wiki's and MuSiQue's of all."""
    return {
        **msgspec.to_builtins(case),
        "hotpotqa": _updated(scripts.hotpotqa.update_answer, case.prediction, case.answers[0]),
        "2wikimultihopqa": _updated(scripts.two_wiki.update_answer, case.prediction, set(case.answers)),
        "musique": _musique(scripts, case),
        "tuning": _drop(scripts, case.prediction, case.answers[:1])[1],
    }


def of_spans(scripts: Scripts, case: SpanCase) -> dict[str, Any]:
    return {**msgspec.to_builtins(case), "iirc": _drop(scripts, case.prediction, case.answer)}


def of_support(scripts: Scripts, case: SupportCase) -> dict[str, Any]:
    """EM, F1, precision, recall and title recall of the paragraphs, then answer-support recall; none is rounded."""
    identify = scripts.identify.get_pid_for_title_paragraph_text
    support = scripts.support()
    support([identify(*each) for each in case.collected], [identify(*each) for each in case.gold])
    names = ("paras_total_em", "paras_total_f1", "paras_total_precision", "paras_total_recall", "titles_total_recall")
    answered = scripts.answer_support()
    answered([" ".join(each) for each in case.collected], case.answer)
    return {
        **msgspec.to_builtins(case),
        "support": [getattr(support, f"_{name}") for name in names],
        "answer_support": answered._total_answer_support_recall,
    }


def _updated(update: Any, *arguments: object) -> list[float]:
    metrics = {"em": 0.0, "f1": 0.0, "prec": 0.0, "recall": 0.0}
    update(metrics, *arguments)
    return [float(value) for value in metrics.values()]


def _musique(scripts: Scripts, case: WordCase) -> list[float]:
    metric = scripts.musique.AnswerMetric()
    metric(case.prediction, list(case.answers))
    return [float(value) for value in metric.get_metric()]


def _drop(scripts: Scripts, prediction: str, answer: Sequence[str]) -> list[float]:
    metrics = scripts.evaluate.evaluate_by_dicts("answer", {"q": list(answer)}, {"q": prediction})
    return [float(metrics[name]) for name in ("em", "f1", "precision", "recall")]


def figures(scripts: Scripts, words: Sequence[WordCase], spans: Sequence[SpanCase]) -> dict[str, Any]:
    """Each script's output for all cases together."""
    with tempfile.TemporaryDirectory() as folder:
        like_hotpotqa = _like_hotpotqa(scripts, words, Path(folder))
        musique = scripts.musique.evaluate(*_musique_files(words, Path(folder)))
    iirc = scripts.evaluate.evaluate_by_dicts(
        "answer",
        {number: list(case.answer) for number, case in enumerate(spans)},
        {number: case.prediction for number, case in enumerate(spans)},
    )
    return {
        **{name: {key: printed[key] for key in ("em", "f1", "prec", "recall")} for name, printed in like_hotpotqa},
        "musique": {name: musique[name] for name in ("answer_f1", "answer_em")},
        "iirc": {name: float(iirc[name]) for name in ("em", "f1", "precision", "recall", "count")},
    }


def _like_hotpotqa(scripts: Scripts, words: Sequence[WordCase], place: Path) -> list[tuple[str, dict[str, float]]]:
    """The output of HotpotQA's and 2Wiki's scripts, given empty supporting facts and evidence."""
    nothing: dict[str, list[object]] = {"supporting_facts": [], "evidences": [], "evidences_id": []}
    asked, aliases = [], []
    for number, case in enumerate(words):
        asked.append({"_id": str(number), "answer": case.answers[0], "answer_id": str(number), **nothing})
        aliases.append({"Q_id": str(number), "aliases": case.answers[1:], "demonyms": []})
    answer = {str(number): case.prediction for number, case in enumerate(words)}
    empty = {key: [["", 0]] for key in answer}
    files = (
        _write(place / "predictions", [{"answer": answer, "sp": empty, "evidence": {key: [] for key in answer}}]),
        _write(place / "questions", [asked]),
    )
    return [
        ("hotpotqa", _printed(scripts.hotpotqa.eval, *files)),
        ("2wikimultihopqa", _printed(scripts.two_wiki.eval, *files, _write(place / "aliases", aliases))),
    ]


def _musique_files(words: Sequence[WordCase], place: Path) -> tuple[str, str]:
    predicted, published = [], []
    for number, case in enumerate(words):
        named = {"id": str(number)}
        said = {"predicted_answer": case.prediction, "predicted_support_idxs": [], "predicted_answerable": True}
        predicted.append(named | said)
        right = {"answer": case.answers[0], "answer_aliases": case.answers[1:]}
        published.append(named | right | {"paragraphs": [], "answerable": True})
    return _write(place / "musique_predictions", predicted), _write(place / "musique_questions", published)


def _printed(evaluate: Any, *paths: str) -> dict[str, float]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        evaluate(*paths)
    return dict(ast.literal_eval(out.getvalue()))


def _write(path: Path, records: Iterable[object]) -> str:
    path.write_text("\n".join(json.dumps(record) for record in records))
    return str(path)


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """JSON Lines, compressed, the same bytes for the same rows."""
    lines = (msgspec.json.encode(row) for row in rows)
    path.write_bytes(gzip.compress(b"\n".join(lines), mtime=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("hotpotqa", "two_wiki", "musique", "ircot"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    given = parser.parse_args()
    scripts = Scripts(given.hotpotqa, given.two_wiki, given.musique, given.ircot)
    words, spans = word_cases(given.seed, given.count), span_cases(given.seed + 1, given.count)
    write(given.output / "words.jsonl.gz", (of_words(scripts, case) for case in words))
    write(given.output / "spans.jsonl.gz", (of_spans(scripts, case) for case in spans))
    support = support_cases(given.seed + 2, given.count)
    write(given.output / "support.jsonl.gz", (of_support(scripts, case) for case in support))
    (given.output / "figures.json").write_text(json.dumps(figures(scripts, words, spans), indent=1) + "\n")


if __name__ == "__main__":
    main()
