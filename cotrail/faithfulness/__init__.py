"""Faithfulness of chains of thought to evidence, and faithful inference (Rethinking with Retrieval)."""
