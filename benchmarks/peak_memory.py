"""Measure the peak memory of Python programs: read their paths from stdin, and print a line of JSON for each.

This is a separate script, run with -I -S, that imports next to nothing: on Linux the peak of a new process includes the
memory of its parent, so the measuring process has to be smaller than the measured ones.
"""

import json
import os
import resource
import sys

MAX_BYTES = 2 << 30  # of address space
MAX_SECONDS = 30  # of processor time
UNIT = 1 if sys.platform == "darwin" else 1024  # bytes in ru_maxrss


def main() -> None:
    """Run each program named on stdin and print its exit status and peak memory, until stdin ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))  # the programs inherit both
    nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    for line in sys.stdin:
        command = [sys.executable, "-I", "-S", line.rstrip("\n")]
        pid = os.posix_spawn(sys.executable, command, {"PYTHONHASHSEED": "0"}, file_actions=nowhere)
        _, status, usage = os.wait4(pid, 0)
        print(json.dumps({"status": os.waitstatus_to_exitcode(status), "bytes": usage.ru_maxrss * UNIT}), flush=True)


if __name__ == "__main__":
    main()
