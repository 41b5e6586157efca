"""WordNet: relations between the words of two texts, as sentences (section 4.4 of Rethinking with Retrieval).

`building` reads WordNet's files into a database, and `source` relates the words of two texts by it.
"""
