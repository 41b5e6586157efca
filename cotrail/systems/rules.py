"""Named sets of rules: where the authors' released code departs from the paper (docs/architecture.md)."""

from typing import Any, Literal

from cotrail.prompting.prompt import Drop

Rules = Literal["paper", "released"]
"""`paper`, or what the authors' `released` code does; single rules are set by hand in a system's settings."""


def rule_settings(rules: Rules, *, instructed: bool) -> dict[str, Any]:
    """The settings in which these rules differ from the defaults, for all systems; each takes those it has.

    instructed: whether the demonstrations have an instruction before the question (Flan-T5), whose context has no
    fixed limit in the released code, so that it drops none of them as it loads them.
    """
    if rules == "paper":
        return {}
    drop: Drop = "first" if instructed else "released"
    return {
        "max_sentences": 10,
        "retrieval": {"duplicates": "released"},
        "reading": {"instruction": "released"},
        "pages": {"scope": "after"},
        "prompting": {"drop": drop},
    }
