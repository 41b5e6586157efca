"""What builds and checks cotrail and isn't part of it: the build's backend, and the modules of clients that it writes.

`backend` builds the package; `clients` writes those modules; `published` writes the description of the service in docs,
`references` writes pages of the documentation,
and `breaking` says what clients of one description find broken in another.
"""
