"""Knowledge sources, which are no corpora of paragraphs: sentences on a text's entities, words or table."""
