"""No text makes hira slow: what cleans untrusted text takes time in proportion to its length, whatever stands in it.

Each function is given 1 MB of each of the patterns that are worst for it, in a process that the kernel ends after some
minutes of processor time. Linear code needs about a second for one pattern, quadratic code an hour.
"""

import random
import resource
import subprocess
import sys
from collections.abc import Callable
from cProfile import Profile

import pytest

from hira.core.sanitize import clean, presentable, sanitize
from hira.tools.pages import extract, tree

SIZE = 1_000_000
SECONDS = 300
PROGRAM = f"""
import sys
from hira.tools.addresses import canonicalise_url, urls
from hira.core.sanitize import clean, presentable, sanitize
from hira.evidence import find_cited
from hira.tools.pages import extract
functions = {{"clean": clean, "sanitize": sanitize, "urls": urls, "canonicalise_url": canonicalise_url, "presentable": lambda text: presentable(text, ()), "extract": extract, "find_cited": find_cited}}
for head, unit in eval(sys.argv[2]):
    functions[sys.argv[1]]((head + unit * ({SIZE} // len(unit)))[:{SIZE}])
    print(repr((head, unit)), flush=True)
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
    ("```\n" + 5_000 * "a.", "\nx [s1]"),
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
    ("<a ", "src"),
    ("<a ", "src="),
    ("<a ", "href"),
    ("<script", "](\\"),
    ("<p>", "<b><p>"),
    ("", "<table><tr><td>"),
    ("", "<div></p>"),
]


def limit_seconds() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


@pytest.mark.heavy
@pytest.mark.parametrize(
    "function", ["clean", "sanitize", "presentable", "urls", "canonicalise_url", "extract", "find_cited"]
)
def test_a_megabyte_of_the_worst_patterns_is_cleaned_in_linear_time(function: str) -> None:
    command = [sys.executable, "-c", PROGRAM, function, repr(PATTERNS)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, preexec_fn=limit_seconds)
    assert ended.stdout.splitlines() == list(map(repr, PATTERNS)), ended.stderr[-200:]


def count_calls(function: Callable[[str], object], head: str, unit: str, size: int) -> int:
    profile = Profile()
    profile.runcall(function, (head + unit * (size // len(unit)))[:size])
    return sum(entry.callcount for entry in profile.getstats())


def show(text: str) -> str:
    return presentable(text, ())


@pytest.mark.parametrize("function", [clean, sanitize, show, extract])
def test_four_times_the_text_takes_four_times_the_function_calls(function: Callable[[str], object]) -> None:
    grown = {}
    for head, unit in PATTERNS:
        few, many = (count_calls(function, head, unit, size) for size in (4_000, 16_000))
        if many > 4.3 * few + 200:
            grown[head + unit] = (few, many)
    assert grown == {}


def test_a_page_beyond_the_bound_of_marks_takes_no_more_function_calls_than_one_at_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tree, "MARKS", 2_000)
    few, many = (count_calls(extract, "", "<b></b>", size) for size in (16_000, 64_000))
    assert many < 1.1 * few


WORDS = [
    "src",
    "href",
    "=",
    "on",
    " ",
    "/",
    '"',
    "'",
    "<",
    ">",
    "<a ",
    "<b",
    "!",
    "@",
    ":",
    "](",
    "[",
    "`",
    "\\",
    "&#x6a;",
]


def test_an_answer_that_was_made_presentable_stays_as_it_is() -> None:
    draw = random.Random(7)
    texts = ["".join(draw.choices(WORDS, k=draw.randint(3, 14))) for _ in range(3_000)]
    texts += ["src<bping<!{`&#x6a;]{(@", "'on<<b'!@style<script\"src\n,'", '#<<on@<x ?"<']
    assert [text for text in texts if show(show(text)) != show(text)] == []
