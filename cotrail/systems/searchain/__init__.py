"""Search-in-the-Chain (Xu et al., 2023): a chain of queries, verified and completed by searches."""
