"""`python -m tests.faults.unsupervised up [--flower]`: `cotrail up` without its supervisors.

What a fault kills stays dead until the test brings it back.
"""

import sys

from cotrail.configuration.settings import settings
from cotrail.workers.stack.stack import Stack

if __name__ == "__main__":
    Stack(settings()).up(flower="--flower" in sys.argv, supervised=False)
