"""Ways to answer the questions that survive `kill -9`, or don't: each as its users would run and restart it.

`python -m benchmarks.killed.NAME QUESTIONS [VARIANT]` answers what isn't answered yet, and prints how many questions
have the right answer; it may be killed at any time and started again by the same command. Servers are those in
COTRAIL_DATABASE_URL and COTRAIL_BROKER_URL; files go to the folder KILLED_FOLDER.
"""

AT_ONCE = 8
"""Questions, or steps, that are carried out at once where a way can do that."""

FOLDER = "KILLED_FOLDER"
