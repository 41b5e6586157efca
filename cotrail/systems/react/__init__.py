"""ReAct, alone and with chains of thought beside it (Yao et al., 2023)."""
