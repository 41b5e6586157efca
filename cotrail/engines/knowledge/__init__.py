"""Knowledge sources, which are no corpora of paragraphs: sentences on a text's entities, words or table.

`store` builds and opens sources: `wikidata`, `wordnet` and `conceptnet`, each in a `database` built from large files.
`words` splits texts into the words that are looked up.
"""
