"""Results that "Search-in-the-Chain" reports in tables 1 to 6; those of 1 and 4 are in `published/searchain.toml`.

Xu et al., 2023 (https://arxiv.org/abs/2304.14732), with gpt-3.5-turbo. The published version (WWW 2024) adds baselines
and seconds; those are as later work reprints them. Scores and shares are written in percent, as printed there, and
stand in the rows from 0 to 1.
"""

from cotrail.evaluation.experiments.report_tables import TableRow, published_percents, published_row
from cotrail.evaluation.experiments.sources import source, table_rows

SOURCE = (
    "What is marked as published is from Xu et al., 2023 (arxiv.org/abs/2304.14732) and its version of WWW 2024: "
    "gpt-3.5-turbo with ColBERTv2, on all development questions of HotpotQA and MuSiQue, 2,290 of StrategyQA and 1,200 "
    "of each other dataset."
)

PAPER = source("searchain")

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


PERFORMANCE = table_rows(PAPER.table("performance"), MODEL)


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

MISLED = table_rows(PAPER.table("misled"), MODEL)


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
