"""`python -m hira` is `hira`."""

import sys

from hira.cli import main

if __name__ == "__main__":
    sys.exit(main())
