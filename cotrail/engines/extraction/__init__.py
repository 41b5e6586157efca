"""Extractive readers: models that find the piece of a paragraph that answers a question.

`extractors` is their catalogue; `transformers` and `scripted` are the adapters of the port, `inputs` puts question
and paragraph together as each family of readers was trained, and `spans` chooses the answer.
"""
