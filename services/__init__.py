"""Use cases behind the command line and the API: submission, forking, scoring, experiments and reports.

Services take typed requests and connections, raise `CotrailError`s, print nothing, and report progress by callbacks.
"""
