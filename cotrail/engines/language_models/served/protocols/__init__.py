"""Wire protocols of providers, a file each; `registry` lists them."""
