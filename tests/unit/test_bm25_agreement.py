"""tantivy's ranking of natural text against an exact Lucene BM25 by somebody else."""

from pathlib import Path

from cotrail.engines.retrieval.stores import build_index, open_index
from tests.searching import search
from tests.unit.docstrings import QUERIES, overlap, passages, questions


def test_the_ten_best_are_those_of_an_exact_bm25(tmp_path: Path) -> None:
    paragraphs = passages()
    asked = questions(paragraphs)
    assert len(paragraphs) > QUERIES / 2
    build_index(paragraphs, tmp_path)
    retriever = open_index(tmp_path)
    results = [[hit.paragraph.id for hit in search(retriever, query, 10)] for query in asked]
    # What is missing is due to lengths of 40 words and more, of which tantivy, like Lucene, keeps a byte.
    assert overlap(paragraphs, asked, results) >= 0.97
    assert overlap(paragraphs, asked, [list(reversed(ids))[:5] for ids in results]) < 0.6
