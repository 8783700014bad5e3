"""`python -m hira` is `hira`."""

import sys


def start() -> int:
    """Load the command line and run it. Ctrl-C ends it without a traceback even while it loads."""
    try:
        from hira.cli import main

        return main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(start())
