"""Experiments of IRCoT: its protocol, tables and figures, beside the published values (IRCoT, sections 4 and 5)."""
