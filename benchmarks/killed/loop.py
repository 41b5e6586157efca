"""A plain script, as research code runs: one question after another, results in memory or in a file each."""

import json
import os
import sys
from pathlib import Path

from benchmarks import workload
from benchmarks.contenders import KINDS
from benchmarks.killed import FOLDER


def main(count: int, saving: str) -> None:
    """Answer the questions; saving: `at-the-end`, or `each`, which writes a file a question and skips what has one."""
    folder = Path(os.environ[FOLDER])
    if saving == "each":
        for number in range(count):
            file = folder / f"{number}.json"
            if not file.exists():
                _write(file, answered(workload.question(number)))
        answers = [json.loads((folder / f"{number}.json").read_text()) for number in range(count)]
    else:
        answers = [answered(workload.question(number)) for number in range(count)]
        _write(folder / "answers.json", answers)
    print(json.dumps({"answered": answers.count(workload.ANSWER)}))


def answered(question: str) -> str:
    """The answer to a question: seven steps."""
    sentences: list[str] = []
    for kind in KINDS:
        if kind == "retrieve":
            workload.search([question, *sentences][-1])
        elif kind == "reason":
            sentences.append(workload.sentence(question, len(sentences)))
    return workload.answer(question)


def _write(file: Path, content: object) -> None:
    """A killed process leaves the whole file or none."""
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(content))
    draft.replace(file)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
