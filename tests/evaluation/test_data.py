"""Where questions come from, and what is said of a file that cannot be used."""

import json
from pathlib import Path

import pytest

from hira.core.errors import UsageError
from hira.evaluation.data import Selection, load
from hira.evaluation.files import items_of
from hira.evaluation.public import SETS, items_of_rows
from hira.evaluation.scorers import check


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_json_lines_with_the_usual_names_need_no_flags(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "q.jsonl",
        '{"id": "a", "question": "Who?", "golden_answers": ["Edda", "E. Thornquist"], "level": 2, "hops": 1}\n'
        '{"id": "b", "question": "When?", "golden_answers": "1889"}\n',
    )
    first, second = items_of(path)
    assert (first.id, first.answers, first.category, first.meta) == ("a", ("Edda", "E. Thornquist"), "2", {"hops": 1})
    assert second.answers == ("1889",)


def test_csv_and_arrays_and_named_columns(tmp_path: Path) -> None:
    table = written(tmp_path, "q.csv", 'frage,loesung\n"Wer, bitte?",Edda\nWann?,1889\n')
    items = items_of(table, {"question": "frage", "answer": "loesung"})
    assert [(item.id, item.question, item.answers) for item in items] == [
        ("1", "Wer, bitte?", ("Edda",)),
        ("2", "Wann?", ("1889",)),
    ]
    array = written(tmp_path, "q.json", json.dumps([{"problem": "1+1", "answer": 2}]))
    assert items_of(array)[0].answers == ("2",)


def test_a_file_that_cannot_be_used_is_told_with_the_place(tmp_path: Path) -> None:
    for name, text, says in (
        ("q.jsonl", "{", "not valid JSON"),
        ("q.jsonl", '{"frage": "Wer?"}', "no column with the questions"),
        ("q.jsonl", '{"question": " "}', "the question is empty"),
        (
            "q.jsonl",
            '{"question": "a", "id": 1}\n{"question": "b", "id": 1}',
            "the id '1' is already used by question 1",
        ),
        ("q.jsonl", '{"question": "a", "files": ["none.txt"]}', "does not exist"),
        ("q.jsonl", "", "there are no questions"),
        ("q.csv", "question,answer\nWho?,Edda,Ingrid\n", "more cells than there are columns"),
    ):
        with pytest.raises(UsageError, match=says) as failed:
            items_of(written(tmp_path, name, text))
        assert name in failed.value.where


def test_a_file_of_a_row_stays_in_the_folder_of_the_questions(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (folder / "in").mkdir(parents=True)
    (folder / "link.txt").symlink_to(written(tmp_path, "secret.txt", "key"))
    inside = ("../secret.txt", "in/../../secret.txt", "/etc/hosts", "link.txt", "..\\secret.txt", "C:\\a.txt", "a\0b")
    for name in (*inside, "~/.bashrc"):
        rows = [{"question": "a", "answer": "b"}, {"question": "c", "answer": "d", "file_name": name}]
        path = written(folder, "q.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        with pytest.raises(UsageError, match=r"is outside the folder|does not exist") as failed:
            items_of(path)
        assert "question 2 of" in failed.value.where
        assert ("does not exist" in failed.value.what) == name.startswith("~")
        row = {**ROWS["gaia"], "file_name": name}
        with pytest.raises(UsageError, match=r"is outside the folder|does not exist"):
            items_of_rows(SETS["gaia"], [row], folder, "gaia")


def test_only_a_set_that_says_so_holds_a_question_that_nothing_answers(tmp_path: Path) -> None:
    for row in ({"answer": []}, {"answer": "", "answerable": False}, {"answer": "the captain", "answerable": "no"}):
        (item,) = items_of(written(tmp_path, "q.jsonl", json.dumps({"question": "Who?", **row})))
        assert (item.unanswerable, item.answers) == (True, ())
        check("match", [item], "q.jsonl")
    for row in ({"answer": None}, {"gold_answer": "the captain"}):
        (item,) = items_of(written(tmp_path, "q.jsonl", json.dumps({"question": "Who?", **row})))
        assert (item.unanswerable, item.answers) == (False, ())
        with pytest.raises(UsageError, match="question '1' has no reference answer") as failed:
            check("match", [item], "q.jsonl")
        assert "--column answer=NAME" in failed.value.fix
        assert ("gold_answer" in row) == ("gold_answer" in failed.value.where)
        check("fact", [item], "q.jsonl")


def test_a_sample_is_drawn_by_its_seed_and_keeps_the_order(tmp_path: Path) -> None:
    def ids(wanted: Selection) -> list[str]:
        return [item.id for item in load("mini", wanted, tmp_path).items]

    every = ids(Selection())
    assert len(every) == 60
    drawn = ids(Selection(sample=10, seed=1))
    assert drawn == ids(Selection(sample=10, seed=1)) != ids(Selection(sample=10, seed=2))
    assert drawn == [one for one in every if one in drawn]
    assert len(ids(Selection(categories=("table",)))) == 10
    labelled = written(
        tmp_path, "q.jsonl", '{"question": "a", "category": "x | y"}\n{"question": "b", "category": "x"}\n'
    )
    assert len(load(str(labelled), Selection(categories=("y",)), tmp_path).items) == 1
    assert ids(Selection(limit=3)) == every[:3]
    with pytest.raises(UsageError, match="no category 'tabel'") as failed:
        ids(Selection(categories=("tabel",)))
    assert "table" in failed.value.fix


def test_a_set_that_is_not_there_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    for name, says in (
        ("hotpot", "unknown set 'hotpot'"),
        ("missing.jsonl", "no file"),
        ("gaia=none.jsonl", "no file"),
    ):
        with pytest.raises(UsageError, match=says):
            load(name, Selection(), tmp_path)


ROWS = {
    "gaia": {"task_id": "t", "Question": "q?", "Level": 2, "Final answer": "17", "file_name": "", "Annotator Metadata": {}},
    "webwalkerqa": {"question": "q?", "answer": "17", "info": {"difficulty_level": "hard", "lang": "zh", "type": "multi_source"}, "root_url": "r"},
    "simpleqa": {"metadata": "{}", "problem": "q?", "answer": "17"},
    "hle": {"id": "t", "question": "q?", "image": "", "answer": "17", "category": "Math", "canary": "x"},
    "frames": {"Prompt": "q?", "Answer": "17", "reasoning_types": "Numerical reasoning"},
    "pubmedqa": {"pubid": 1, "question": "q?", "context": {"contexts": ["c"]}, "final_decision": "17"},
    "cupcase": {"id": 1, "clean_case_presentation": "A man of 40.", "correct_diagnosis": "17", "distractor1": "a"},
    "aime2025": {"problem": "q?", "answer": "17", "id": "0"},
    "beyondaime": {"problem": "q?", "answer": 17},
}  # fmt: skip
QA = {"id": "test_0", "question": "q?", "golden_answers": ["17", "seventeen"]}


def test_each_public_set_is_read_from_rows_of_its_shape(tmp_path: Path) -> None:
    for name in (*ROWS, "musique"):
        row = ROWS.get(name, QA)
        (item,) = items_of_rows(SETS[name], [row], tmp_path, name)
        assert item.question == (f"{SETS[name].ask}\n\nA man of 40." if SETS[name].ask else "q?")
        assert item.answers[:1] == ("17",)
        path = written(tmp_path, "rows.jsonl", json.dumps(row) + "\n")
        data = load(f"{name}={path}", Selection(), tmp_path)
        assert data.items == (item,)
        assert data.metric == SETS[name].metric


def test_rows_without_text_or_answers_are_left_out_or_refused(tmp_path: Path) -> None:
    seen = {**ROWS["hle"], "id": "seen", "image": "data:image/png;base64,x"}
    (item,) = items_of_rows(SETS["hle"], [ROWS["hle"], seen], tmp_path, "hle")
    assert item.id == "t"
    assert "canary" not in item.meta
    with pytest.raises(UsageError, match="simpleqa has no column 'answer'") as failed:
        items_of_rows(SETS["simpleqa"], [{"problem": "q?", "gold": "17"}], tmp_path, "simpleqa")
    assert failed.value.where == "columns: gold, problem"
    (item,) = items_of_rows(SETS["aime2025"], [{"problem": "q?", "answer": "17"}], tmp_path, "aime2025")
    assert item.id == "1", "a set may lack any other column"
    bare = {"clean_case_presentation": "", "correct_diagnosis": "17"}
    with pytest.raises(UsageError, match="the question is empty"):
        items_of_rows(SETS["cupcase"], [bare], tmp_path, "cupcase")


def test_sets_are_broken_down_as_the_papers_do(tmp_path: Path) -> None:
    def category(name: str, **changed: object) -> str:
        (item,) = items_of_rows(SETS[name], [{**ROWS[name], **changed}], tmp_path, name)
        return item.category

    written(tmp_path, "a.png", "")
    assert category("gaia") == "level 2 | without file | reasoning & web browsing"
    assert category("gaia", file_name="a.png") == "file understanding"
    for tools in ("1. Image recognition tools", "1. YouTube video player", "1. Speech-to-text", "1. OCR"):
        assert category("gaia", **{"Annotator Metadata": {"Tools": tools}}).endswith("multi-modality")
        assert category("gaia", **{"Annotator Metadata": json.dumps({"Tools": tools})}).endswith("multi-modality")
    aside: dict[str, object] = {"Tools": "1. A browser", "Steps": "Look at the picture in the video."}
    for metadata in (aside, json.dumps(aside), json.dumps("1. A browser"), None):
        assert category("gaia", **{"Annotator Metadata": metadata}).endswith("reasoning & web browsing"), "by its tools"
    assert category("gaia", **{"Annotator Metadata": json.dumps("1. OCR")}).endswith("multi-modality")
    assert category("hle", category="") == "Other | SF"
    assert category("hle", category="Engineering") == "Engineering | CE"
    assert category("webwalkerqa", info="none") == ""
    assert category("webwalkerqa", info=None, Info={"difficulty_level": "easy"}) == "easy"
    assert category("webwalkerqa") == "hard | zh"
    assert category("webwalkerqa", info={"Difficulty_Level": "Medium", "Language": "English"}) == "medium | en"
    assert category("hle") == "Math | NS"
    assert category("frames", reasoning_types="Numerical reasoning | Tabular reasoning").count("|") == 1


def test_a_set_of_another_shape_says_what_it_has(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no column 'problem'") as failed:
        items_of_rows(SETS["simpleqa"], [{"query": "q?", "answer": "17"}], tmp_path, "simpleqa")
    assert "query" in failed.value.where


def test_deepresearch_bench_is_read_from_its_repository(tmp_path: Path) -> None:
    for name, row in {
        "prompt_data/query.jsonl": {"id": 1, "topic": "Finance", "language": "en", "prompt": "Compare funds."},
        "criteria_data/criteria.jsonl": {
            "id": 1,
            "prompt": "Compare funds.",
            "dimension_weight": {"insight": 1.0},
            "criterions": {},
        },
        "test_data/cleaned_data/reference.jsonl": {"prompt": "Compare funds.", "article": "Funds differ."},
    }.items():
        (tmp_path / name).parent.mkdir(parents=True)
        written(tmp_path, name, json.dumps(row) + "\n")
    data = load(f"deepresearch-bench={tmp_path}", Selection(), tmp_path)
    assert (data.items[0].category, data.metric) == ("en", "race")
    assert data.items[0].meta["reference"] == "Funds differ."
    with pytest.raises(UsageError, match="repository's folder"):
        load("deepresearch-bench", Selection(), tmp_path)
