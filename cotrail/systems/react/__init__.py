"""ReAct, alone and with chains of thought combined with it (Yao et al., 2023)."""
