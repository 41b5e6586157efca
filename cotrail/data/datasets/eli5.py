"""ELI5's files in KILT's form: questions from a forum with long answers (Fan et al. 2019)."""

from cotrail.data.datasets import kilt
from cotrail.data.datasets.spec import DatasetSpec, Scoring

SPEC = DatasetSpec(
    name="eli5",
    title="ELI5",
    files="eli5-*-kilt.jsonl",
    source=kilt.SOURCE,
    asks="questions that are answered at length",
    metric="ROUGE-L",
    forms=(kilt.form("eli5", "long-form"),),
    scoring=Scoring("kilt", long_answers=True),
    sort="long-form",
)
