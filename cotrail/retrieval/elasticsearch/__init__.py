"""BM25 with Elasticsearch 7.17 to 9 or OpenSearch 1 to 3.

`client` asks and asks again, `index` says how an index lies in the server, `building` fills one, `store` knows the
corpora by name, `retriever` searches one, and `combining` lets threads search together.
"""

from cotrail.retrieval.elasticsearch.retriever import ElasticsearchRetriever
from cotrail.retrieval.elasticsearch.store import ElasticsearchStore

__all__ = ["ElasticsearchRetriever", "ElasticsearchStore"]
