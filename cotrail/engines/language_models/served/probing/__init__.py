"""What a served model takes, found out by asking it: one small request of each kind, and a table that fits.

`learning` goes from what its table says to what it answers, and to a proposed table; `probe` sends the requests;
`fitting` takes out what is refused; `abilities` is what the model can, and where its thoughts are.
"""
