"""docs/architecture.md is true: a run calls what the page lists, in its order."""

import subprocess
import sys
from pathlib import Path

from ways import check_order, steps_below

ROOT = Path(__file__).parent.parent
TRACED = """
import sys
from pathlib import Path

seen = {}

def trace(frame, event, argument):
    code = frame.f_code
    if event == "call" and "hira" in code.co_filename:
        seen.setdefault((code.co_filename, code.co_qualname))

sys.setprofile(trace)
from hira.cli import main
try:
    main(["ask", "How many memory entries does the coordinator recall at most?", "--docs", sys.argv[1], "--quiet", "--journal", sys.argv[2]])
except SystemExit:
    pass
sys.setprofile(None)
for file, name in seen:
    print(f"{Path(file).as_posix()} {name}", file=sys.stderr)
"""


def test_a_question_takes_the_way_that_the_page_shows(tmp_path: Path) -> None:
    steps = steps_below("The way of a question")
    assert 10 <= len(steps) <= 12
    command = [sys.executable, "-c", TRACED, str(ROOT / "docs"), str(tmp_path / "journal.sqlite")]
    environ = {"HIRA_MODEL": "offline", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ, cwd=tmp_path)
    lines = [line for line in done.stderr.splitlines() if "/hira/" in line and line.count(" ") == 1]
    check_order(steps, [(path, name) for path, _, name in (line.partition(" ") for line in lines)])
