"""Wikidata: dated statements on the entities of a sentence, as sentences (section 4.3 of Rethinking with Retrieval).

`entities` decodes an entity's JSON, `building` builds a database from dumps or from entities that it requests from a
server, and `source` finds the entities that a sentence names, and puts their statements in words.
"""
