"""Wikidata: dated statements on the entities of a sentence, as sentences (section 4.3 of Rethinking with Retrieval)."""
