"""The commands, a file each: words, options, and what is printed."""
