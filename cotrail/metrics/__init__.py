"""The publishers' scores."""
