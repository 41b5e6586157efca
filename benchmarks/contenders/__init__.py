"""Contenders: each runs the same work, seven steps a question, and prints its steps and seconds as JSON.

A question alternates three searches and three sentences, and ends with an answer; models and searches cost nothing.
`python -m benchmarks.contenders.NAME QUESTIONS PROCESSES` uses the servers in
COTRAIL_DATABASE_URL and COTRAIL_BROKER_URL.
"""

KINDS = ("retrieve", "reason", "retrieve", "reason", "retrieve", "reason", "read")
"""The kinds of a question's steps."""
