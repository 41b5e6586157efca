"""zsRE's files in KILT's form: relations that a model was never trained on (Levy et al. 2017)."""

from cotrail.data.datasets import kilt
from cotrail.data.datasets.spec import DatasetSpec, Scoring

SPEC = DatasetSpec(
    name="zsre",
    title="zsRE",
    files="structured_zeroshot-*-kilt.jsonl",
    source=kilt.SOURCE,
    asks="the object of a subject's relation",
    metric="exact match and F1, as SQuAD's script",
    kinds="relation",
    forms=(kilt.form("zsre", "slot-filling"),),
    scoring=Scoring("kilt"),
    sort="slot-filling",
)
