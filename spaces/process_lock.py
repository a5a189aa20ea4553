"""A lock for what belongs to a whole process, such as its imports and torch's exporters."""

from __future__ import annotations

import os
from threading import RLock


def lock_of_process() -> RLock:
    """Return a lock that forks wait for; in a process forked while another thread held it, it would never be free."""
    lock = RLock()
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
