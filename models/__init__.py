"""The audit store: the tables in PostgreSQL, and the functions that read and write them."""
