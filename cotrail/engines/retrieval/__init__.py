"""Retrieval with BM25: an adapter for each search engine, and the stores that keep corpora by name.

`stores` opens the store that the settings name: tantivy's indexes in a folder (`tantivy`, `analysis`), or a search
server's (`elasticsearch`, `search_server`, `search_file`). `manifest` describes an index.
"""
