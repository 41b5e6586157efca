"""The profile `deterministic`: prefix caching that changes no bit of the output.

The kernels of a pass depend on its number of rows and tokens, so that a row's results differ in their last bits with
the rows beside it. Here, therefore, a pass has one row, and every prompt is cut in the same way: into chunks of the
same size from its first token on. The whole chunks that two prompts share then come out the same for both, whatever was
read before or in between, and may be kept; the rest of a prompt and what the model wrote may not. There is no
speculative decoding either, because a draft is verified in a pass of several tokens.
"""

CHUNK_TOKENS = 128
"""Tokens of a chunk. On average, half a chunk of a shared prefix is read again."""

SPARE_ROWS = 3
"""Rows of the cache beside the active one: they keep the demonstrations of chains and of answers, and more."""
