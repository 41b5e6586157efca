"""Extensions as somebody writes them outside of cotrail; `test_extensions.py` copies them into a home."""
