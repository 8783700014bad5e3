"""No text makes hira slow: what cleans untrusted text takes time in proportion to its length, whatever stands in it.

Each function is given 1 MB of the patterns that are worst for it, in a process that the kernel ends after 60 seconds of
processor time. Linear code needs about one of them; code that takes quadratic time needs an hour.
"""

import resource
import subprocess
import sys

import pytest

SIZE = 1_000_000
SECONDS = 60
PROGRAM = f"""
import sys
from hira.tools.addresses import canonicalise_url, urls
from hira.core.sanitize import clean, presentable, sanitize
functions = {{"clean": clean, "sanitize": sanitize, "urls": urls, "canonicalise_url": canonicalise_url, "presentable": lambda text: presentable(text, ())}}
head, unit = eval(sys.argv[2])
functions[sys.argv[1]]((head + unit * ({SIZE} // len(unit)))[:{SIZE}])
"""
PATTERNS = [
    ("http://a/", ")"),
    ("", "\\"),
    ("", "<"),
    ("<", " "),
    ("<a ", "a='b' "),
    ("<x ", 'a="'),
    ("", "<think "),
    ("", "<begin_a"),
    ("", "[a]("),
    ("", "[a]:"),
    ("", "![a]("),
    ("[x](a", " "),
    ("[x](", "()"),
    ("", "`"),
    ("", "```\n"),
    ("", '"name": "'),
    ("", "\x1b["),
    ("\x1b[", "0"),
    ("", "\u200d"),
    ("[s1", ", s1"),
    ("", "src="),
    ("<a ", "src="),
    ("<a ", "<a src="),
    ("[x](", " "),
    ("", "[a](<"),
    ("", "![![a](x)](y)"),
]


def limit_seconds() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


@pytest.mark.heavy
@pytest.mark.parametrize("function", ["clean", "sanitize", "presentable", "urls", "canonicalise_url"])
def test_a_megabyte_of_the_worst_patterns_is_cleaned_in_linear_time(function: str) -> None:
    ended = {}
    for pattern in PATTERNS:
        command = [sys.executable, "-c", PROGRAM, function, repr(pattern)]
        ended[pattern] = subprocess.run(command, check=False, capture_output=True, text=True, preexec_fn=limit_seconds)
    assert {pattern: run.stderr[-200:] for pattern, run in ended.items() if run.returncode} == {}
