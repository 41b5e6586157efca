"""The datasets whose questions can be read: their files, where these come from, and what their questions are like."""

from collections.abc import Mapping

from msgspec import Struct


class Dataset(Struct, frozen=True, kw_only=True):
    """A dataset. Files of several forms are told apart by their content (`file_formats`).

    files: the publishers' files that can be read; source: where to get them; asks: what its questions ask for.
    metric: what an answer is scored by; kinds: the names of the questions' kinds, with what they say; empty for none.
    """

    title: str
    files: str
    source: str
    asks: str
    metric: str
    kinds: str = ""


_PROCESSED = "or those that the authors of IRCoT processed"
_EM_F1 = "exact match and F1, as SQuAD's script"
_KILT = "https://github.com/facebookresearch/KILT"

CATALOGUE: Mapping[str, Dataset] = {
    "hotpotqa": Dataset(
        title="HotpotQA",
        files=f"hotpot_train_v1.1.json, hotpot_dev_distractor_v1.json, {_PROCESSED}",
        source="https://hotpotqa.github.io",
        asks="two-step questions about Wikipedia",
        metric="exact match and F1, as its own script",
        kinds="type: bridge, comparison; level: easy, medium, hard",
    ),
    "2wikimultihopqa": Dataset(
        title="2WikiMultihopQA",
        files=f"train.json, dev.json, with id_aliases.json in the same folder, {_PROCESSED}",
        source="https://github.com/Alab-NII/2wikimultihop",
        asks="questions of two steps and more about Wikipedia",
        metric="exact match and F1, as its own script; an answer's other names count",
        kinds="type: compositional, comparison, inference, bridge_comparison",
    ),
    "musique": Dataset(
        title="MuSiQue",
        files=f"musique_ans_v1.0_*.jsonl, {_PROCESSED}",
        source="https://github.com/StonyBrookNLP/musique",
        asks="questions of two to four steps about Wikipedia",
        metric="exact match and F1, as its own script; aliases count",
        kinds="hops: the number and the arrangement of steps",
    ),
    "iirc": Dataset(
        title="IIRC",
        files=f"train.json, dev.json, {_PROCESSED}",
        source="https://allenai.org/data/iirc",
        asks="questions about a passage that lacks a part of the answer",
        metric="exact match and F1, as DROP's script",
        kinds="answer_type: span, value, binary",
    ),
    "strategyqa": Dataset(
        title="StrategyQA",
        files="strategyqa_train.json, dev.json, strategyqa_test.json, or BIG-bench's task.json",
        source="https://allenai.org/data/strategyqa, https://github.com/eladsegal/strategyqa",
        asks="yes or no, by steps that the question doesn't name",
        metric="accuracy",
    ),
    "strategyqa-facts": Dataset(
        title="StrategyQA with its annotators' facts",
        files="as for strategyqa, but not BIG-bench's",
        source="https://allenai.org/data/strategyqa",
        asks="yes or no, each question under the facts that its annotators wrote",
        metric="accuracy",
    ),
    "tempquestions": Dataset(
        title="TempQuestions",
        files="TempQuestions.json",
        source="http://qa.mpi-inf.mpg.de",
        asks="questions about time, the implicit ones",
        metric=_EM_F1,
        kinds="signal: the temporal signal",
    ),
    "infotabs": Dataset(
        title="INFOTABS",
        files="infotabs_*.tsv, with the folder tables beside it",
        source="https://github.com/infotabs/infotabs",
        asks="true or false, given a table of Wikipedia",
        metric="accuracy",
        kinds="category: of the table; label: E, C",
    ),
    "zsre": Dataset(
        title="zsRE",
        files="structured_zeroshot-*-kilt.jsonl",
        source=_KILT,
        asks="the object of a subject's relation",
        metric=_EM_F1,
        kinds="relation",
    ),
    "trex": Dataset(
        title="T-REx",
        files="trex-*-kilt.jsonl",
        source=_KILT,
        asks="the object of a subject's relation",
        metric=_EM_F1,
        kinds="relation",
    ),
    "fever": Dataset(
        title="FEVER",
        files="fever-*-kilt.jsonl, or FEVER's own train.jsonl, paper_dev.jsonl and so on",
        source=f"{_KILT}, https://fever.ai/dataset/fever.html",
        asks="whether a claim is true or false; of FEVER's own files also whether that can be told",
        metric="accuracy",
        kinds="label: SUPPORTS, REFUTES, NOT ENOUGH INFO",
    ),
    "eli5": Dataset(
        title="ELI5",
        files="eli5-*-kilt.jsonl",
        source=_KILT,
        asks="questions that are answered at length",
        metric="ROUGE-L",
    ),
    "jsonl": Dataset(
        title="questions of your own",
        files='lines of {"id", "question", "answers", "gold"}',
        source="you",
        asks="anything",
        metric=_EM_F1,
        kinds="any, by the field `kinds`",
    ),
}
"""The datasets by the names that `--dataset` takes; `strategyqa-facts` shows the annotators' facts, `jsonl` is
cotrail's own format."""
