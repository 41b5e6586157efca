"""The audit store: the tables in PostgreSQL, and the functions that read and write them."""

from cotrail.configuration.variables import LIBPQ, take_out

take_out(LIBPQ)  # before anything connects
