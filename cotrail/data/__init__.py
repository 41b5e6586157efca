"""Data as published: datasets, the corpora made from them, and demonstrations."""
