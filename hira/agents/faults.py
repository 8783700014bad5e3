"""Where faults of tools and experts go with their tracebacks: the logger `hira.agents`. The run itself goes on and is
told no more than an error's name and text."""

import logging

log = logging.getLogger("hira.agents")
log.addHandler(logging.NullHandler())  # else a program that configures no logging has them on its terminal
