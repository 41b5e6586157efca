"""The command line: words, options, prompts, progress and printing; a file is named as its command."""
