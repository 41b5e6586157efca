"""Knowledge that is no corpus of paragraphs: what may be said of a text's entities, words or table, as sentences."""
