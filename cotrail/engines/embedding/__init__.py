"""Models that tell how alike texts are, by vectors that they make of them.

`embedder` is the port, `catalogue` says which there are, and `vectors` compares what they make.
"""
