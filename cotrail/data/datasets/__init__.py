"""Question files in their publishers' formats, one module a format; `loading` tells which."""
