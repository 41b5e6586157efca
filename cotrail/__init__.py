"""cotrail's domain: questions, actions, systems, prompts, retrieval, generation and scores.

Nothing in here knows of Celery, SQL or HTTP.
"""
