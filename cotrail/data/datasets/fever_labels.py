"""FEVER's labels, and its claims as questions: of its own files, and of KILT's version of them."""

from cotrail.errors import DatasetError

TWO_LABELS = {"SUPPORTS": "true", "REFUTES": "false"}
"""The labels of KILT's version, as answers."""

LABELS = {**TWO_LABELS, "NOT ENOUGH INFO": "not enough info"}

TWO_LABELS_QUESTION = "Is the following claim true or false?"
THREE_LABELS_QUESTION = "Is the following claim true or false, or is there not enough info?"


def as_question(claim: str, prompt: str) -> str:
    """Put what is asked before the claim; empty where the claim is."""
    stripped = claim.strip()
    return stripped and f"{prompt} {stripped}"


def answer_of(label: str, labels: dict[str, str], place: str) -> str:
    """The answer that stands for a label; DatasetError where there is no such label."""
    if label not in labels:
        choices = " or ".join(labels)
        raise DatasetError(f"{place}: the label is {label!r}; correct it to {choices}, or take the line out")
    return labels[label]
