"""Models that tell whether a sentence follows from a text (natural language inference).

`entailer` is the port and `catalogue` says which there are; `labels` reads what a classifier's outputs mean.
"""
