"""The domain of cotrail: the language of systems, the systems, engines, data, evaluation and the audit.

Nothing in here knows of Celery, SQL or HTTP.
"""

__version__ = "1.0.0"
