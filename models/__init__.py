"""The audit store: the tables in PostgreSQL, and the verbs that read and write them."""
