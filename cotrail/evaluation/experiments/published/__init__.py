"""Figures that papers and toolkits publish, a file of data a source, and one reader of all."""
