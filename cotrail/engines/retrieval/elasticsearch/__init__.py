"""BM25 with Elasticsearch 7.10 to 9 or OpenSearch 1 to 3.

`store` knows the corpora by name, and `retriever` searches one, concurrent searches in one request. `client` sends
requests with retries, through Elasticsearch's own client over a transport that all servers accept. `index` describes
one of ours, which `building` fills, or finds one that others fill, and detects writes to it.
"""
