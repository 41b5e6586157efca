"""What is compared: each runs the same work, seven steps a question, and prints its steps and seconds as JSON.

A question is three searches, three sentences and an answer, in turn; models and searches cost nothing.
`python -m benchmarks.contenders.NAME QUESTIONS PROCESSES`, with the servers in
COTRAIL_DATABASE_URL and COTRAIL_BROKER_URL.
"""

KINDS = ("retrieve", "reason", "retrieve", "reason", "retrieve", "reason", "read")
"""A question's steps."""
