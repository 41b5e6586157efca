"""WordNet: relations between the words of two texts, as sentences (section 4.4 of Rethinking with Retrieval).

`database_files` reads WordNet's files, `building` builds a database from them, `speech` numbers parts of speech,
`forms` finds the words of a text in it, and `source` relates those of two texts.
"""
