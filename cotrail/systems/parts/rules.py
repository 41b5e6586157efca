"""Named sets of rules: where the authors' released code departs from the paper (docs/deviations.md)."""

from collections.abc import Container
from typing import Any, Literal

from cotrail.core.prompts import Drop

Rules = Literal["paper", "released"]
"""`paper`, or what the authors' `released` code does; single rules are set by hand in a system's settings."""


def rule_settings(rules: Rules, names: Container[str], *, instructed: bool) -> dict[str, Any]:
    """The settings in which these rules differ from the defaults, of those that a system has by their names.

    Systems that read and weigh chains follow the code of Rethinking with Retrieval, all others that of IRCoT.

    instructed: whether the demonstrations have an instruction before the question (Flan-T5), whose context has no
    fixed limit in the released code, so that it drops none of them as it loads them; and the passage that a question
    of IIRC pins is last, as in their demonstrations. It has Flan-T5 write at most 200 tokens at every step
    (`max_length` in `base_configs`) and GPT-3 300 (`gpt3generator.py`).
    """
    if rules == "paper":
        return {}
    if "chain_rules" in names:
        return {"chain_rules": "released", "until": "end"}
    drop: Drop = "first" if instructed else "released"
    tokens = 200 if instructed else 300
    settings = {
        "max_sentences": 10,
        "max_sentence_tokens": tokens,
        "retrieval": {"duplicates": "released", "distinct_texts": True, "pinned": "released"},
        "reading": {
            "instruction": "released",
            "answers": "released",
            "max_answer_tokens": tokens,
            "max_chain_tokens": tokens,
        },
        "pages": {"scope": "after", "max_tokens": tokens},
        "prompting": {"drop": drop, "pinned": "bottom" if instructed else "top"},
    }
    return {name: value for name, value in settings.items() if name in names}
