"""`python -m hira.cli.training` is `hira-train`, as accelerate starts it on each of several GPUs."""

import sys

from hira.cli.training import main

sys.exit(main())
