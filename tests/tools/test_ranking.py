"""The order of what a search of documents finds: spread over documents, newest vintage first, with what is mentioned."""

from pathlib import Path

import pytest

from hira import Hira
from hira.tools.documents import Index, search_documents
from hira.tools.documents.ranking import Ranked, Vintage, find_names, fuse, name_document, read_vintage, sort_key

FILLER = "The harbour of Kestwick has a crane, a shed and a quay of stone. " * 12


def write(folder: Path, **texts: str) -> Index:
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return Index([folder])


async def names(index: Index, question: str, top: int = 10) -> list[str]:
    return [hit.name.removesuffix(".md") for hit in await index.search(question, top)]


async def test_at_most_four_passages_of_a_document_are_among_the_first_ten(tmp_path: Path) -> None:
    long = "\n\n".join(f"## Mill {number}\n\nThe mill turns. {FILLER}" for number in range(12))
    others = {f"other{number}": f"# Other {number}\n\nA mill stands here, {number} in all.\n" for number in range(5)}
    found = await names(write(tmp_path, long=f"# Mills\n\n{long}", **others), "mill")
    assert found.count("long") == 5
    assert set(found[:9]) == {"long", *others}
    assert found[:9].count("long") == 4


async def test_a_single_document_fills_all_places(tmp_path: Path) -> None:
    long = "\n\n".join(f"## Mill {number}\n\nThe mill turns. {FILLER}" for number in range(12))
    assert await names(write(tmp_path, long=f"# Mills\n\n{long}"), "mill") == ["long"] * 10


async def test_a_document_that_the_best_passage_names_is_found_although_it_shares_no_word_with_the_question(
    tmp_path: Path,
) -> None:
    index = write(
        tmp_path,
        opera="# The Red Mill\n\nThe opera The Red Mill was composed by Ida Lorn Vey.\n",
        person="# Ida Lorn Vey (musician)\n\nShe was born in Kestwick.\n",
        distractor="# Operas\n\nAn opera is sung. Where a composer comes from is not told.\n",
    )
    assert "person" in await names(index, "Where does the composer of the opera The Red Mill come from?")
    assert "person" not in await names(index, "Who sang in it?")


async def test_a_passage_that_shares_a_name_with_the_best_passage_is_found_before_those_that_share_only_words(
    tmp_path: Path,
) -> None:
    others = {f"other{number}": f"# Waterfall {number}\n\nA waterfall of a country.\n" for number in range(20)}
    index = write(
        tmp_path,
        river="# Ovar\n\nThe river Ovar runs through Kestria.\n",
        falls=f"# Grey Falls\n\n{FILLER} This waterfall is in Kestria.\n",
        town=f"# Vell\n\n{FILLER} The town of Vell is in Kestria.\n",
        **others,
    )
    shown = await names(index, "What waterfall is in the country of the river Ovar?")
    assert shown[0] == "river"
    assert "falls" in shown
    assert "town" not in shown
    assert "falls" not in await names(index, "What waterfall is in a country?")


def test_names_are_runs_of_capitals_that_the_question_lacks() -> None:
    text = "The Ovar\nThe Ovar rises near Port Vell. In Kestria, Ida Lorn Vey's 3 maps show it; 渔港 too."
    assert find_names(text, "Where does the Ovar rise?") == ["Port Vell", "Kestria", "Ida Lorn Vey's"]
    assert find_names(text, "How far is Ovar from port Vell in Kestria?") == ["Ida Lorn Vey's"]


async def test_a_title_of_many_documents_names_none_of_them(tmp_path: Path) -> None:
    same = {f"minutes{chr(97 + number)}": f"# Minutes\n\nNothing of note, {number}.\n" for number in range(5)}
    index = write(tmp_path, mill="# The mill\n\nThe mill is in the Minutes of the board.\n", **same)
    assert await names(index, "mill") == ["mill"]


async def test_the_newest_vintage_comes_first_and_says_so(tmp_path: Path) -> None:
    quarters = {"ops_q1_2024": 11, "ops_q3_2025": 12, "ops_q1_2026": 13}
    texts = {name: f"# Report of operations\n\nThe fleet has {many} robots.\n" for name, many in quarters.items()}
    index = write(tmp_path, **texts)
    assert (await names(index, "How many robots has the fleet?"))[0] == "ops_q1_2026"
    seen = await search_documents(index).call({"query": "How many robots has the fleet?"})
    shown = {passage.source.location: passage.text.splitlines()[0] for passage in seen.passages}
    assert shown == {
        "ops_q1_2026.md": "(of 2026-Q1, the newest of 3 versions)",
        "ops_q3_2025.md": "(of 2025-Q3; ops_q1_2026.md is newer)",
        "ops_q1_2024.md": "(of 2024-Q1; ops_q1_2026.md is newer)",
    }
    assert all("newest" not in passage.source.text for passage in seen.passages)


async def test_the_newest_vintage_comes_first_among_passages_that_fit_less_well_too(tmp_path: Path) -> None:
    def write_report(year: int) -> str:
        return (
            f"# Harbour report {year}\n\n## Fees\n\nThe harbour fees are fees.\n\n## Cranes\n\n{FILLER}Fees: {year}.\n"
        )

    index = write(tmp_path, **{f"harbour_{year}": write_report(year) for year in (2021, 2022, 2023)})
    hits = await index.search("harbour fees")
    cranes = [hit.name for hit in hits if "Cranes" in hit.piece.heading]
    assert cranes == ["harbour_2023.md", "harbour_2022.md", "harbour_2021.md"]


async def test_an_outdated_passage_comes_with_what_the_newest_vintage_has_under_its_heading(tmp_path: Path) -> None:
    rules = {"rules_2024": "Staff may carry over five days of leave.", "rules_2026": "Unused days expire."}
    chapters = "\n\n".join(f"## Chapter {number}\n\nThe rule number {number}.\n" for number in range(9))
    texts = {name: f"# Rules\n\n{chapters}\n\n## Leave\n\n{rule}\n" for name, rule in rules.items()}
    seen = await search_documents(write(tmp_path, **texts)).call({"query": "How many days may staff carry over?"})
    shown = [(passage.source.location, passage.text.splitlines()[-1]) for passage in seen.passages]
    assert shown.index(("rules_2026.md", rules["rules_2026"])) < shown.index(("rules_2024.md", rules["rules_2024"]))
    assert ("rules_2026.md", "The rule number 8.") in shown
    assert ("rules_2024.md", "The rule number 8.") not in shown


async def test_of_an_older_year_that_is_asked_for_nothing_newer_comes_along(tmp_path: Path) -> None:
    rules = {"rules_2024": "Staff may carry over five holidays.", "rules_2026": "Nothing is kept."}
    index = write(tmp_path, **{name: f"# Of {name}\n\n## Leave\n\n{rule}\n" for name, rule in rules.items()})
    assert await names(index, "How many holidays may staff carry over?") == ["rules_2026", "rules_2024"]
    assert await names(index, "How many holidays could staff carry over in 2024?") == ["rules_2024"]


async def test_the_initials_of_words_that_follow_each_other_are_looked_for(tmp_path: Path) -> None:
    index = write(tmp_path, sheet="# Sheet\n\nGFT of the port: 900 tons.\n", other="# Other\n\nThe port sleeps.\n")
    assert await names(index, "gross freight tonnage") == ["sheet"]
    assert await names(index, "gross and freight, tonnage") == []


async def test_initials_that_the_index_reads_as_a_common_word_find_nothing(tmp_path: Path) -> None:
    index = write(tmp_path, rules="# Rules\n\nShirts or coats.\n", ops="# Operations\n\nThe report says little.\n")
    assert await names(index, "What does the operations report say?") == ["ops"]


async def test_vintages_whose_dates_are_written_differently_are_compared(tmp_path: Path) -> None:
    texts = {f"ops_{date}": "# Operations\n\nThe fleet has robots.\n" for date in ("2025_03", "2025_q4", "2024", "v12")}
    assert (await names(write(tmp_path, **texts), "How many robots has the fleet?"))[0] == "ops_2025_q4"


async def test_a_question_with_a_date_gets_the_vintage_of_that_date_first(tmp_path: Path) -> None:
    texts = {f"ops_{year}": f"# Operations\n\nThe fleet has {year - 2000} robots.\n" for year in (2024, 2025, 2026)}
    index = write(tmp_path, **texts)
    for year in ("2024", "2025", "2026"):
        assert (await names(index, f"How many robots had the fleet in {year}?"))[0] == f"ops_{year}"
    assert len(await names(index, "How many robots had the fleet in 1999?")) == 3


@pytest.mark.parametrize(
    ("name", "title", "vintage"),
    [
        ("ops/archive/q1_2025_ops_report.pdf", "", Vintage("ops report", "2025-Q1")),
        ("board_minutes_2024_06.md", "", Vintage("board minutes", "2024-06")),
        ("minutes-2024-06-30-final.docx", "", Vintage("minutes", "2024-06-30")),
        ("safety_march2026.md", "", Vintage("safety", "2026-03")),
        ("manual-v12.pdf", "", Vintage("manual", "version 12")),
        ("a.pdf", "Annual report 2023", Vintage("annual report", "2023")),
        ("2023.pdf", "", Vintage("", "2023")),
        ("p12345.md", "Part 20267", Vintage("", "")),
        ("vlx500.md", "", Vintage("", "")),
    ],
)
def test_the_vintage_of_a_document_is_the_date_in_its_name(name: str, title: str, vintage: Vintage) -> None:
    assert read_vintage(name, title) == vintage


def test_versions_are_compared_as_numbers() -> None:
    assert sort_key("version 10") > sort_key("version 9")
    assert sort_key("2026-03") > sort_key("2026") > sort_key("2025-12-31")
    assert sort_key("2026-04") > sort_key("2026-Q1") > sort_key("2026-02")


@pytest.mark.parametrize(
    ("title", "key"), [("Ida Vey (singer)", "Ida Vey"), ("notes", ""), ("2024", ""), ("渔港简史", "渔港简史")]
)
def test_a_document_is_mentioned_by_its_title_without_what_is_added(title: str, key: str) -> None:
    assert name_document(title) == key


def test_two_orders_are_fused_by_reciprocal_rank_and_keep_the_scores_of_words() -> None:
    by_words = [Ranked(1, 1, 9.0), Ranked(2, 2, 5.0)]
    by_meaning = [Ranked(3, 3, 0.0), Ranked(2, 2, 0.0)]
    assert fuse([by_words, by_meaning], lambda ranked: ranked.row) == [
        Ranked(2, 2, 5.0),
        Ranked(1, 1, 9.0),
        Ranked(3, 3, 0.0),
    ]


async def test_the_best_passages_come_with_the_passages_around_them(tmp_path: Path) -> None:
    chapters = "\n\n".join(f"## Part {number}\n\nText number {number}.\n" for number in range(9))
    index = write(tmp_path, book=f"# Book\n\n{chapters}\n\n## Wheels\n\nThe wheel is red.\n\n## End\n\nIt ends.\n")
    seen = await search_documents(index).call({"query": "red wheel"})
    assert [passage.text.splitlines()[-1] for passage in seen.passages] == [
        "Text number 8.",
        "The wheel is red.",
        "It ends.",
    ]


@pytest.mark.parametrize(("when", "noted"), [("", True), (" in 2024", False)])
async def test_an_answer_from_an_older_edition_says_which_is_newer(when: str, noted: bool, tmp_path: Path) -> None:
    rules = {"rules_2024": f"Staff could carry over five holidays{when}.", "rules_2026": "Nothing is kept."}
    write(tmp_path, **{name: f"# Rules\n\n## Leave\n\n{rule}\n" for name, rule in rules.items()})
    async with Hira("offline", docs=tmp_path, workflow="rag") as hira:
        answer = await hira.ask(f"How many holidays could staff carry over{when}?")
    assert answer.status == "answered"
    note = "rules_2024.md supports the answer; rules_2026.md is a newer edition of it"
    assert (note in answer.notices) is noted
