"""Results that "Search-in-the-Chain" reports in tables 1 to 6.

Xu et al., 2023 (https://arxiv.org/abs/2304.14732), with gpt-3.5-turbo. The published version (WWW 2024) adds baselines
and seconds; those are as later work reprints them. Scores and shares are written in percent, as printed there, and
stand in the rows from 0 to 1.
"""

from cotrail.evaluation.experiments.report_tables import TableRow, published_percents, published_row

SOURCE = (
    "What is marked as published is from Xu et al., 2023 (arxiv.org/abs/2304.14732) and its version of WWW 2024: "
    "gpt-3.5-turbo with ColBERTv2, on all development questions of HotpotQA and MuSiQue, 2,290 of StrategyQA and 1,200 "
    "of each other dataset."
)

MODEL = "gpt-3.5-turbo"

DATASETS = {
    "hotpotqa": "HotpotQA",
    "musique": "MuSiQue",
    "2wikimultihopqa": "2WikiMultiHopQA",
    "strategyqa": "StrategyQA",
    "zsre": "zsRE",
    "trex": "T-REx",
    "fever": "FEVER",
    "eli5": "ELI5",
}
"""The datasets, in the order of table 1."""

SEARCHAIN, WITHOUT_RETRIEVAL = "SearChain", "SearChain w/o IR"
WITHOUT_VERIFICATION, WITHOUT_COMPLETION = "SearChain w/o Verification", "SearChain w/o Completion"

WWW = "WWW 2024"


def _percent(where: str, label: str, **scores: float) -> TableRow:
    return published_percents(where, label, MODEL, **scores)


def _by_dataset(label: str, *scores: float, where: str = "table 1") -> TableRow:
    return _percent(where, label, **dict(zip(DATASETS, scores, strict=False)))


VERIFY_AND_EDIT = {"hotpotqa": 44.03, "musique": 15.57, "2wikimultihopqa": 40.83, "eli5": 23.80}
TREE_OF_THOUGHT = {"hotpotqa": 50.65, "musique": 15.61, "2wikimultihopqa": 42.49, "strategyqa": 72.55, "eli5": 24.20}

PERFORMANCE = (
    _by_dataset("Direct Prompting", 31.95, 5.91, 25.82, 66.25, 22.75, 43.85, 73.45, 21.90),
    _by_dataset("Auto-CoT", 33.53, 10.55, 29.15, 65.40, 21.30, 43.98, 76.61, 21.55),
    _by_dataset("CoT", 35.04, 9.46, 30.41, 65.83, 22.36, 44.51, 76.98, 21.79),
    _by_dataset("CoT-SC", 36.85, 10.02, 32.68, 70.84, 24.74, 46.06, 77.15, 22.05),
    _by_dataset("Recite-and-answer", 36.49, 10.97, 32.53, 70.47, 24.98, 46.14, 77.35, 22.10),
    _by_dataset("Self-Ask w/o IR", 33.95, 11.10, 35.65, 65.45, 20.16, 44.71, 75.31, 21.73),
    _by_dataset("Least-to-Most", 34.05, 11.45, 32.88, 65.78, 21.86, 44.98, 75.98, 21.95),
    _by_dataset("Plan-and-Solve", 36.33, 12.95, 35.68, 73.21, 25.15, 47.58, 77.08, 22.23),
    _by_dataset(WITHOUT_RETRIEVAL, 38.36, 13.61, 40.49, 75.62, 30.14, 52.69, 77.06, 22.54),
    _by_dataset("Direct Retrieval", 34.09, 10.22, 30.01, 66.78, 52.29, 59.28, 78.25, 23.40),
    _by_dataset("ToolFormer", 36.75, 12.98, 35.49, 67.02, 51.35, 59.17, 80.79, 23.05),
    _by_dataset("Self-Ask", 40.05, 14.28, 39.58, 67.65, 50.51, 59.12, 79.41, 23.25),
    _by_dataset("Plan-and-Solve w/ IR", 41.65, 15.07, 42.05, 74.58, 52.15, 60.03, 81.04, 24.56),
    _by_dataset("ReAct → CoT-SC", 43.15, 15.49, 40.36, 70.43, 53.27, 60.42, 80.59, 24.05),
    _percent(WWW, "Verify-and-Edit", **VERIFY_AND_EDIT),
    _percent(WWW, "Tree-of-Thought w/ IR", **TREE_OF_THOUGHT),
    _by_dataset("DSP", 51.97, 15.83, 43.52, 72.41, 54.35, 61.32, 80.65, 23.46),
    _by_dataset(SEARCHAIN, 56.91, 17.07, 46.27, 76.95, 57.29, 65.07, 81.15, 25.57),
    _by_dataset(WITHOUT_VERIFICATION, 46.11, 14.70, 42.67, 75.98, 43.58, 55.46, 78.79, 22.98),
    _by_dataset(WITHOUT_COMPLETION, 53.05, 15.86, 43.64, 76.53, 45.78, 56.03, 80.03, 25.02),
)


def _sources(dataset: str, llm: float, corrected: float, completed: float) -> TableRow:
    return _percent("table 2", DATASETS[dataset], llm=llm, corrected=corrected, completed=completed)


SOURCES = (
    _sources("hotpotqa", 74.56, 20.94, 4.50),
    _sources("musique", 78.83, 14.60, 6.57),
    _sources("2wikimultihopqa", 75.83, 18.96, 5.21),
    _sources("strategyqa", 94.98, 2.78, 2.24),
)


def _effect(dataset: str, without: float, helped_without: float, helped_with: float) -> TableRow:
    scores = {"without": without, "helped_without": helped_without, "helped_with": helped_with}
    return _percent("table 3", DATASETS[dataset], **scores)


EFFECT = (
    _effect("hotpotqa", 38.36, 31.38, 60.86),
    _effect("musique", 13.61, 10.20, 18.49),
    _effect("2wikimultihopqa", 40.49, 32.60, 50.52),
    _effect("strategyqa", 75.62, 68.96, 78.42),
)

MISLED = (
    _by_dataset("Self-Ask", 15.76, 14.32, 25.76, 10.29, where="table 4"),
    _by_dataset("React", 17.68, 15.22, 25.99, 10.03, where="table 4"),
    _by_dataset("DSP", 14.72, 14.03, 24.31, 9.22, where="table 4"),
    _by_dataset(SEARCHAIN, 6.33, 6.50, 12.71, 5.31, where="table 4"),
)


def _steps(label: str, *numbers: float) -> TableRow:
    return published_row("table 5", label, MODEL, **dict(zip(("2", "3", "4"), numbers, strict=True)))


STEPS = (
    _steps("CoT", 2.25, 2.23, 2.19),
    _steps("Self-Ask w/o IR", 2.04, 2.21, 2.15),
    _steps("Least-to-Most", 2.52, 2.68, 2.70),
    _steps(WITHOUT_RETRIEVAL, 4.16, 4.66, 5.06),
)


def _efficiency(label: str, words_in: int, words_out: int, rounds: float, seconds: float, where: str = WWW) -> TableRow:
    return published_row(where, label, MODEL, read=words_in, written=words_out, rounds=rounds, seconds=seconds)


EFFICIENCY = (
    _efficiency("Self-Ask", 401, 63, 2.19, 6.63, "table 6, WWW 2024"),
    _efficiency("Plan-and-Solve w/ IR", 450, 71, 1, 6.05),
    _efficiency("ReAct → CoT-SC", 938, 110, 2.35, 8.25),
    _efficiency("Verify-and-Edit", 565, 307, 2.40, 13.90),
    _efficiency("Tree-of-Thought w/ IR", 622, 341, 2.29, 13.28),
    _efficiency("DSP", 1759, 155, 2.15, 10.47, "table 6, WWW 2024"),
    _efficiency(SEARCHAIN, 390, 189, 2.21, 8.52, "table 6, WWW 2024"),
)
"""On the four multi-hop datasets together; only the version of WWW 2024 has seconds."""
