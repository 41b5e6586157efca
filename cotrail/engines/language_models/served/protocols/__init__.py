"""Wire protocols of providers, a file each; `wire_protocols` lists them."""
