"""`python until_it_serves.py cotrail ...` interrupts a command once it has said where it serves."""

import signal
import subprocess
import sys
from pathlib import Path

INTERRUPTED = (0, 130)


def main() -> int:
    """Returns 0 where the command served, and ended when it was interrupted."""
    command = [str(Path(sys.executable).with_name("cotrail")), *sys.argv[2:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as serving:
        assert serving.stdout is not None
        for line in serving.stdout:
            sys.stderr.write(line)
            if "http://" in line:
                serving.send_signal(signal.SIGINT)
    return 0 if serving.returncode in INTERRUPTED else 1


if __name__ == "__main__":
    sys.exit(main())
