"""``python -m nasrlm``: the command line in this Python, whatever ``nasrlm`` is on the path."""

from nasrlm.cli import main

if __name__ == "__main__":  # spawned processes import this file
    main()
