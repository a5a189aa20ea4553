"""``python -m nasrlm``: the command line of this Python, whatever ``nasrlm`` is on the path."""

from nasrlm.cli import main

if __name__ == "__main__":  # processes that are spawned import this file
    main()
