"""Public sets from the hub: what is asked of it, where attached files lie, and what its failures mean. The packages of
the hub are stand-ins, written into a folder, since tests have no network."""

import json
import sys
from pathlib import Path

import pytest

from hira.core.errors import AccessDenied, EndpointError, HiraError, UsageError
from hira.evaluation.public import load_public

DATASETS = """
import json
from pathlib import Path

HERE = Path(__file__).parent


class DatasetGatedError(Exception):
    pass


def load_dataset(hub, config, *, split):
    told = json.loads((HERE / "told.json").read_text())
    with (HERE / "asked.jsonl").open("a") as asked:
        asked.write(json.dumps([hub, config, split]) + "\\n")
    if "fails" in told:
        raise eval(told["fails"])
    return told["rows"]
"""
HUB = """
import json
from pathlib import Path

HERE = Path(__file__).parent


def snapshot_download(hub, *, repo_type, allow_patterns):
    with (HERE / "asked.jsonl").open("a") as asked:
        asked.write(json.dumps([hub, repo_type, allow_patterns]) + "\\n")
    return str(HERE / "cache" / "datasets--SET" / "snapshots" / "REVISION")
"""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the stand-ins: `told.json` is what the hub says, `asked.jsonl` what it was asked."""
    (tmp_path / "datasets.py").write_text(DATASETS)
    (tmp_path / "huggingface_hub.py").write_text(HUB)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("datasets", "huggingface_hub"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def asked(hub: Path) -> list[list[object]]:
    return [json.loads(line) for line in (hub / "asked.jsonl").read_text().splitlines()]


def test_a_set_is_fetched_with_its_split_and_configuration_or_those_that_are_named(hub: Path) -> None:
    (hub / "told.json").write_text(json.dumps({"rows": [{"problem": "Who?", "answer": "Edda"}]}))
    (item,) = load_public("simpleqa")
    assert (item.question, item.answers) == ("Who?", ("Edda",))
    load_public("simpleqa", split="train", config="small")
    assert asked(hub) == [["basicv8vc/SimpleQA", None, "test"], ["basicv8vc/SimpleQA", "small", "train"]]


def test_files_of_questions_are_fetched_alone_and_found_where_the_hub_keeps_them(hub: Path) -> None:
    row = {"Question": "What does the list say?", "Final answer": "Sarn", "Level": 1, "Annotator Metadata": {}}
    rows = [{**row, "task_id": "1", "file_name": "list.csv"}, {**row, "task_id": "2", "file_name": ""}]
    (hub / "told.json").write_text(json.dumps({"rows": rows}))
    blob = hub / "cache" / "datasets--SET" / "blobs" / "list"
    folder = hub / "cache" / "datasets--SET" / "snapshots" / "REVISION" / "2023" / "validation"
    for place in (blob.parent, folder):
        place.mkdir(parents=True)
    blob.write_text("town,river\nBirkholm,Sarn\n")
    (folder / "list.csv").symlink_to(blob)
    first, second = load_public("gaia")
    assert [path.read_text() for path in first.files] == [blob.read_text()]
    assert not second.files
    assert asked(hub) == [
        ["gaia-benchmark/GAIA", "2023_all", "validation"],
        ["gaia-benchmark/GAIA", "dataset", ["2023/validation/list.csv"]],
    ]


@pytest.mark.parametrize(
    ("fails", "kind", "says", "fix"),
    [
        ("DatasetGatedError('ask first')", AccessDenied, "is gated", "ask for access"),
        ("OSError('the repository is gated')", AccessDenied, "is gated", "ask for access"),
        ("OSError('401 Client Error')", AccessDenied, "is gated", "hf auth login"),
        ("OSError('403 Client Error')", AccessDenied, "is gated", "hf auth login"),
        ("ValueError('Unknown split \"x\"')", UsageError, "Unknown split", "--split"),
        ("FileNotFoundError('no such split')", UsageError, "no such split", "--split"),
        ("ValueError('bad zip file')", EndpointError, "could not be fetched: ValueError: bad zip", "hle=FILE.jsonl"),
        ("ConnectionError('split the network')", EndpointError, "could not be fetched", "hle=FILE.jsonl"),
    ],
)
def test_what_the_hub_says_is_an_error_with_the_way_out(
    hub: Path, fails: str, kind: type[HiraError], says: str, fix: str
) -> None:
    (hub / "told.json").write_text(json.dumps({"fails": fails}))
    with pytest.raises(kind, match=says) as caught:
        load_public("hle")
    assert fix in caught.value.fix
    assert caught.value.where == "cais/hle on the hub, split test"
    with pytest.raises(kind) as named:
        load_public("gaia")
    assert named.value.where == "gaia-benchmark/GAIA on the hub, config 2023_all, split validation"
