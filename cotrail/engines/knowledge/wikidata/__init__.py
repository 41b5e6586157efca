"""Wikidata: dated statements on the entities of a sentence, as sentences (section 4.3 of Rethinking with Retrieval).

`entities` decodes an entity's JSON, `dumps` reads dumps and extracts, `building` builds a database from them,
`fetching` requests entities from a server instead. `linking` finds the entities that a sentence names, by `names`;
`sentences` has the templates, `times` puts dates in words, and `source` combines them.
"""
