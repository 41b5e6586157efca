"""WordNet: relations between the words of two texts, as sentences (section 4.4 of Rethinking with Retrieval)."""
