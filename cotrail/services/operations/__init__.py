"""What can be asked of cotrail, over any transport: each operation is a function of a service, and its route over HTTP.

`operation` makes one of a function, `all_operations` knows all, `once` carries it out once, `event_names` end streams.
"""
