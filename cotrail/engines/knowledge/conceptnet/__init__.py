"""ConceptNet: relations between the words of two texts, as sentences (section 4.4 of Rethinking with Retrieval).

`building` builds a database from the assertions file, `relations` has a template for each relation, and `source` looks
up the words of two texts.
"""
