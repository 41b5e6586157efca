"""Experiments of IRCoT: its protocol, tables and figures, next to the published values (IRCoT, sections 4 and 5)."""
