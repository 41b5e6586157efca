"""The client of the service: the operations of `cotrail.services.operations`, carried out by a server."""
