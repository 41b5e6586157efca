"""T-REx's files in KILT's form: facts of Wikidata (Elsahar et al. 2018)."""

from cotrail.data.datasets import kilt
from cotrail.data.datasets.spec import DatasetSpec, Scoring

SPEC = DatasetSpec(
    name="trex",
    title="T-REx",
    files="trex-*-kilt.jsonl",
    source=kilt.SOURCE,
    asks="the object of a subject's relation",
    metric="exact match and F1, as SQuAD's script",
    kinds="relation",
    forms=(kilt.form("trex", "slot-filling"),),
    scoring=Scoring("kilt"),
    sort="slot-filling",
)
