"""BM25 with Elasticsearch 7.10 to 9 or OpenSearch 1 to 3.

`client` asks and asks again, by Elasticsearch's own client over a `transport` that every server takes. `index` says how
an index of ours lies in the server and `building` fills one; `existing` finds one that somebody else fills, `documents`
reads its paragraphs, and `written` tells whether it has changed. `store` knows the corpora by name, `retriever`
searches one, `factor` puts scores on one scale, and `combining` lets threads search together.
"""
