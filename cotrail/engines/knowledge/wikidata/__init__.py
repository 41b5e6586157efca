"""Wikidata: what is dated about the entities of a sentence, as sentences (section 4.3 of Rethinking with Retrieval).

`entities` says what an entity's JSON holds, `reading` reads dumps and extracts, `building` makes a database of them,
`fetching` asks a server for entities instead. `linking` finds the entities that a sentence names, `statements` has the
templates, and `source` puts both together.
"""
