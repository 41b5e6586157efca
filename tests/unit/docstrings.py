"""Natural text that every Python contains: the standard library's docstrings, and exact BM25 over them."""

import ast
import inspect
import re
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import bm25s  # type: ignore[import-untyped]
import numpy as np

from cotrail.core.questions import Paragraph
from cotrail.engines.retrieval.tantivy import english, plain
from tests.unit.statements import statements

PACKAGES = "asyncio concurrent email http importlib json logging multiprocessing unittest urllib xml".split()  # noqa: SIM905
LEAST_WORDS = 8
QUERIES = 2_000


@cache
def passages() -> tuple[Paragraph, ...]:
    """A paragraph for each docstring with enough text, named by what it documents."""
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [*library.glob("*.py"), *(path for name in PACKAGES for path in (library / name).rglob("*.py"))]
    documented = (each for path in sorted(files) for each in _documented(path))
    texts = {text: title for title, text in documented if len(text.split()) >= LEAST_WORDS}
    return tuple(Paragraph(id=f"{i:05}", title=title, text=text) for i, (text, title) in enumerate(texts.items()))


def questions(paragraphs: Sequence[Paragraph]) -> list[str]:
    """The first sentences of some of them, spread over all."""
    return [re.split(r"(?<=[.?!])\s", paragraph.text)[0] for paragraph in paragraphs[:: -(-len(paragraphs) // QUERIES)]]


def overlap(paragraphs: Sequence[Paragraph], asked: Sequence[str], results: Sequence[Sequence[str]]) -> float:
    """The share of expected results that were found.

    results: up to ten ids for each query. A result is right if its exact score is that of the tenth or better.
    """
    exact = ExactBM25(paragraphs)
    numbers = {paragraph.id: number for number, paragraph in enumerate(paragraphs)}
    right = due = 0
    for query, ids in zip(asked, results, strict=True):
        scores = exact.scores(query)
        best = sorted((score for score in scores[np.argsort(scores)[-10:]] if score > 0), reverse=True)
        right += sum(bool(scores[numbers[id_]] >= best[-1] * (1 - 1e-6)) for id_ in ids)
        due += len(best)
    return right / due


class ExactBM25:
    """Lucene's BM25 of title plus text with exact lengths, which Lucene and tantivy round to one byte."""

    def __init__(self, paragraphs: Sequence[Paragraph]) -> None:
        self._analyzer = english()
        columns = [[each.title for each in paragraphs], [each.text for each in paragraphs]]
        self._fields = [self._indexed([self._words(text) for text in column]) for column in columns]

    def scores(self, query: str) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
        """The score of every paragraph."""
        words = self._words(query)
        scores: np.ndarray[tuple[int], np.dtype[np.float32]] = sum(field.get_scores(words) for field in self._fields)
        return scores

    def _words(self, text: str) -> list[str]:
        words: list[str] = self._analyzer.analyze(plain(text))
        return words

    def _indexed(self, texts: list[list[str]]) -> bm25s.BM25:
        field = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        field.index(texts, show_progress=False)
        return field


def _documented(path: Path) -> Iterator[tuple[str, str]]:
    """The names that a file documents, in words, and their docstrings."""
    for node in statements(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            name = path.stem if isinstance(node, ast.Module) else node.name
            if text := ast.get_docstring(node):
                yield name.replace("_", " ").strip(), inspect.cleandoc(text)
