"""The language of systems: questions, paragraphs, prompts, actions, the ports that carry them out, and replay."""
