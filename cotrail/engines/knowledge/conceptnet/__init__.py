"""ConceptNet: how the words of two texts are related, as sentences (section 4.4 of Rethinking with Retrieval).

`building` makes a database of the assertions file, `relations` has a template for each relation, and `source` says how
the words of two texts are related.
"""
