"""The role of a second language model, which infers an answer from facts that the run's own model wrote."""

from cotrail.core.ports.role import EngineRole

INFERRER = EngineRole(name="inferrer", kind="model", work="infers answers from facts")
"""Rethinking with Retrieval has UnifiedQA-v2 in it (section 5.3 and appendix A.5)."""
