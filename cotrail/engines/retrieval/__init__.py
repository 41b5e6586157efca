"""Retrieval: a record for each search engine (`engine`), and the stores that keep corpora by name.

`stores` has the folder's corpora, of any engine (`tantivy`), and a search server's (`elasticsearch`,
`search_server`). `manifest` describes an index, and says which engine searches it.
"""
