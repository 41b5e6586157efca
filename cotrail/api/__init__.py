"""The service over HTTP: the operations of `cotrail.services.operations` as routes, and what is followed live."""
