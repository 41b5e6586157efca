"""WordNet: how the words of two texts are related, as sentences (section 4.4 of Rethinking with Retrieval).

`files` reads the database files, `building` makes a database of them, `forms` finds the words of a text in it, and
`source` says how those of two texts are related.
"""
