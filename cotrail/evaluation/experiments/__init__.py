"""Experiments: many runs planned as one, and what came out of them (IRCoT, section 4)."""
