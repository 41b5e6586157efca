"""Rethinking with Retrieval (He et al., 2022): faithful inference, and its variants (sections 3 and 5.3)."""
