"""`hira report` and `hira rubric`: where they write, what they end with, and a page that can do no harm."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hira.agents.trajectory import Rollout
from hira.cli.report import as_html, as_markdown
from hira.evidence import Citation, Source
from hira.runtime.answer import Answer, answer_of
from hira.testing import Endpoint
from tests.cli.command import Command

LIBRARY = str(Path(__file__).parent.parent / "data" / "library")
TOPIC = "Lighthouses, tides and ferries of the coast"


@pytest.fixture
def hira(tmp_path: Path) -> Command:
    return Command(tmp_path, {"HIRA_MODEL": "offline", "HIRA_JOURNAL": "off"})


def test_a_report_goes_to_stdout_in_markdown_with_numbered_references(hira: Command) -> None:
    said = hira("report", TOPIC, "--docs", LIBRARY, "--quiet")
    assert said.code == 0
    assert said.out.startswith(f"# {TOPIC}\n")
    body, _, listed = said.out.partition("\n## References\n\n")
    assert not re.search(r"\[s\d", said.out)
    numbers = sorted({int(number) for number in re.findall(r"\[(\d+)\]", body)})
    assert numbers == list(range(1, len(numbers) + 1))
    lines = listed.strip().splitlines()
    assert [int(line.partition(".")[0]) for line in lines] == numbers
    assert all(line.endswith("supported)") for line in lines)
    assert any("tides — tides.txt" in line for line in lines)


def test_a_report_in_chinese_has_its_headings_in_chinese(hira: Command) -> None:
    said = hira("report", "-", "--docs", LIBRARY, "--quiet", stdin="灯塔和渔港的历史\n")
    assert said.code == 0
    assert said.out.startswith("# 灯塔和渔港的历史\n")
    assert said.out.rstrip().endswith("## 参考文献\n\n1. 渔港简史 — notes/渔港.md, line 5 (1 有据)")


def test_with_o_it_goes_to_the_file_and_stdout_stays_empty(hira: Command, tmp_path: Path) -> None:
    said = hira("report", TOPIC, "--docs", LIBRARY, "-o", "report.md")
    assert (said.code, said.out) == (0, "")
    assert re.search(r"report\.md is written, with \d references", said.err)
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith(f"# {TOPIC}\n")
    said = hira("report", TOPIC, "--docs", LIBRARY, "-o", "report.json", "--quiet")
    assert (said.code, said.out) == (0, "")
    assert "[s1]" in json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["answer"]
    said = hira("report", TOPIC, "--docs", LIBRARY, "-o", "report.html", "--json", "--quiet")
    assert json.loads(said.out)["workflow"] == "mams"
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_report_is_replayed_in_the_form_in_which_it_was_told(hira: Command, tmp_path: Path) -> None:
    journal = ("--journal", str(tmp_path / "journal.sqlite"))
    said = hira("report", TOPIC, "--docs", LIBRARY, "--quiet", *journal)
    again = hira("replay", "last", "--quiet", "--output", "again.html", *journal)
    assert again.code == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert hira("replay", "last", "--quiet", *journal).out == said.out


def test_a_report_that_its_budget_ended_is_gone_on_with_and_written_as_a_report(hira: Command, tmp_path: Path) -> None:
    kept = {"HIRA_JOURNAL": str(tmp_path / "journal.sqlite")}
    said = hira("report", TOPIC, "--docs", LIBRARY, "-o", "report.html", "--max-calls", "3", **kept)
    assert said.code == 5
    assert "to resume: hira resume" in said.err
    said = hira("resume", "last", "--max-calls", "50", "--output", "report.html", **kept)
    assert (said.code, said.out) == (0, "")
    assert re.search(r"report\.html is written, with \d references", said.err)
    said = hira("resume", "last", "--quiet", **kept)
    assert said.code == 0
    assert "## References\n\n1. " in said.out
    assert "Skerry Point" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_dry_run_prints_the_maximum_of_each_role(hira: Command) -> None:
    said = hira("report", TOPIC, "--docs", LIBRARY, "--dry-run")
    assert said.code == 0
    assert all(role in said.out for role in ("search", "state", "report"))


VALID = [
    {"title": f"Title {at}", "description": f"{head} Criterion: it is so.", "weight": weight}
    for at, (head, weight) in enumerate([("Key", 5)] * 5 + [("Error", -2)] * 2)
]


def test_a_rubric_is_printed_and_scores_a_report(hira: Command, tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("# Report\n", encoding="utf-8")
    with Endpoint([json.dumps({"items": VALID}), *['{"rating": 7}'] * 14]) as endpoint:
        model = ("--model", "scripted", "--base-url", endpoint.base_url)
        said = hira("rubric", TOPIC, "--json", *model)
        assert json.loads(said.out) == {"query": TOPIC, "items": VALID}
        (tmp_path / "rubric.json").write_text(said.out, encoding="utf-8")
        known = ("--rubric", "rubric.json", "--report", "report.md", *model)
        said = hira("rubric", TOPIC, *known)
        scored = json.loads(hira("rubric", TOPIC, *known, "--json").out)
    assert said.code == 0
    assert re.search(r"^score: [01]\.\d{3} of 1 \(by eq\. 2 of the paper: -?\d\.\d{3}\)$", said.out, re.MULTILINE)
    assert said.out.count("7/10") == len(VALID)
    assert (scored["items"], scored["ratings"]) == (VALID, [7] * 7)


def test_offline_writes_and_judges_no_rubric(hira: Command) -> None:
    said = hira("rubric", TOPIC)
    assert said.code == 2
    assert "`offline` writes and judges no rubrics" in said.err


def test_a_judge_that_fails_leaves_the_report_without_a_score_and_ends_with_5(hira: Command, tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("# Report\n", encoding="utf-8")
    judged = ['{"rating": 10}'] * 6 + ["no json", "none again"]
    with Endpoint([json.dumps({"items": VALID}), *judged]) as endpoint:
        said = hira("rubric", TOPIC, "--report", "report.md", "--model", "scripted", "--base-url", endpoint.base_url)
    assert said.code == 5
    assert "1 of 7 items could not be judged" in said.err
    assert "score: none of 1" in said.out
    assert said.out.count("10/10") == 6


def test_a_model_that_writes_no_valid_rubric_ends_with_3(hira: Command) -> None:
    with Endpoint([json.dumps({"items": VALID[:3]})] * 2) as endpoint:
        said = hira("rubric", TOPIC, "--model", "scripted", "--base-url", endpoint.base_url)
    assert (said.code, said.out) == (3, "")
    assert "the model wrote no valid rubric, asked twice" in said.err
    assert "there are 3 items; write 7 to 20" in said.err


HOSTILE = """# Report <script>alert(1)</script>

Tides rise [s1]. <img src=x onerror=alert(1)> ![pixel](https://evil.example/p.png)

- [click](javascript:alert(1)) and [there](https://evil.example/) and [here](https://tides.example/a?b=1&c=2 "a [s1] onload=x")
- <https://evil.example/auto> `code [s1] <b>`

```evil" onload="x
<iframe src="https://evil.example"></iframe> [s2]
```

| a | b |
|---|---|
| <style>@import url(https://evil.example)</style> | \ue0009\ue001 [s2][s1] |

&lt;script&gt; [ref]: https://evil.example
[def]: https://evil.example
[def] [s99]
"""


def hostile() -> Answer:
    record = Rollout("run", '"><script>alert(2)</script> ${policy}', "mams")
    record.sources.add(
        Source("https://tides.example/a?b=1&c=2", 'Tides <b> [x](https://evil.example) & "more"', "Tides rise.")
    )
    record.sources.add(Source("notes/a<script>.md", "", "Text."))
    record.sources.add(Source("javascript:alert(3)", "Never cited", "Text."))
    record.answer, record.status = HOSTILE, "answered"
    record.citations = [Citation("s1", "Tides rise", "Tides rise.", "supported")]
    return answer_of(record, "<model>")


class Page(HTMLParser):
    """Collects every tag with its attributes, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.style = ""
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.style += data
        else:
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


OURS = set(
    "html head meta title style body main article section h1 h2 h3 p ul ol li a sup code pre table thead tbody tr th td"
    " span em footer strong blockquote hr br del".split()
)


def test_nothing_that_models_or_pages_wrote_is_markup_in_the_page() -> None:
    page = as_html(hostile())
    read = Page(page)
    assert {tag for tag, _ in read.tags} <= OURS
    allowed: dict[str, set[str]] = {
        "a": {"href", "rel"}, "li": {"id"}, "html": {"lang"}, "meta": {"charset", "http-equiv", "content", "name"},
    }  # fmt: skip
    for tag, attributes in read.tags:
        assert set(attributes) <= allowed.get(tag, set()), (tag, attributes)
    links = {attributes["href"] for tag, attributes in read.tags if tag == "a"}
    assert links == {"#ref-1", "#ref-2", "https://tides.example/a?b=1&c=2"}
    for words in ("<script>alert(1)</script>", "<iframe", "onerror=alert(1)", "<style>@import"):
        assert words in read.text, "it is shown as the text that it is"


def test_the_page_asks_for_nothing_and_its_policy_lets_nothing_be_asked_for() -> None:
    page = as_html(hostile())
    read = Page(page)
    policy = next(one["content"] for tag, one in read.tags if tag == "meta" and "http-equiv" in one)
    digest = base64.b64encode(hashlib.sha256(read.style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\(|@import|src=|https?:", read.style)
    assert "light-dark(" in read.style


def test_titles_of_sources_are_text_in_markdown_too() -> None:
    listed = as_markdown(hostile()).partition("## References\n\n")[2]
    first, second = listed.splitlines()
    assert first == (
        '1. Tides \\<b\\> \\[x\\](https://evil.example) & "more" — <https://tides.example/a?b=1&c=2> (1 supported)'
    )
    assert second == "2. notes/a\\<script\\>.md"
