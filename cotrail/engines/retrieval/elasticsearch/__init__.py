"""BM25 with Elasticsearch 7.10 to 9 or OpenSearch 1 to 3.

`store` knows the corpora by name, and `retriever` searches one. `client` sends requests with retries, through
Elasticsearch's own client over a `transport` that every server accepts. `index` describes an index of ours and
`building` fills one; `existing` finds one that others fill, `documents` reads its paragraphs, and `sequence_numbers`
detects writes to it. `score_factor` puts scores on one scale, and `combining` batches concurrent searches.
"""
