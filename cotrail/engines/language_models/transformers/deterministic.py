"""Reading only what is new of a prompt, and still writing what reading all of it would have written, bit for bit.

A pass computes each of its rows together with the others, and the kernels that it is made of depend on how many rows
and tokens there are: what comes out of a row differs in its last bits with its company. So here a pass has one row,
and every prompt is cut alike, into chunks of the same size from its first token on. The whole chunks that two prompts
begin with then come out the same for both, whatever was read before or in between, and may be kept; the rest of a
prompt and what the model wrote may not. Nothing is guessed either, because a guessed token is checked in company.
"""

CHUNK = 128
"""Tokens of a chunk. Of what prompts have in common, half of this is read again on average."""

SPARE = 3
"""Rows of the cache beside the one at work: they keep the demonstrations of chains and of answers, and more."""
