"""Candidates for the answer to a question, as chains of thought state them (Cao et al., 2023, section 3.2)."""

from cotrail.core.results import Generated
from cotrail.systems.parts.token_scores import mean_score
from cotrail.systems.probtree.tree import UNKNOWN, Candidate, Source

NOT_KNOWN = "Unknown"
STATEMENT = "So the answer is:"


def candidate(source: Source, written: Generated) -> Candidate:
    """The answer that a chain states, with the mean log probability of what stands before the statement.

    It is unknown where the chain was cut off, states nothing or says so.
    """
    reasons, stated, behind = written.text.rpartition(STATEMENT)
    text = behind.strip().partition("\n")[0].strip().removesuffix(".").rstrip()
    if not stated or not text or written.ended == "length" or NOT_KNOWN in text:
        return Candidate(source=source, text="", score=UNKNOWN, chain=written.text.strip())
    score = mean_score(written, 0, len(reasons.rstrip())) if reasons.strip() else None
    return Candidate(source=source, text=text, score=UNKNOWN if score is None else score, chain=written.text.strip())
