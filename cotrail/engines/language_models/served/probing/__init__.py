"""What a served model takes, found out by asking it: one small request of each kind, and a table that fits.

`learning` goes from what its table says to what it answers; `probe` sends the requests; `fitting` takes out what is
refused, which `refused_fields` reads out of a refusal; `thought_place` finds the thoughts, `abilities` what the model
can, `listing` what the server says of its models; `findings` is what was learned, and `proposal` its table as TOML.
"""
