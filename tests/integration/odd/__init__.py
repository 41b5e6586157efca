"""Runs that aren't the happy case, and everything that shows, prints, counts or exports them."""
