"""What can be asked of cotrail, over any transport: each operation is a function of a service, and its route over HTTP.

`operation` makes one of a function, `registry` knows all, `once` carries a request out once, `event_names` end streams.
"""
