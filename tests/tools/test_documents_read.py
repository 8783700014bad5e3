import json
import sys
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest
from made_documents import (
    WORD,
    docx,
    epub,
    paragraph,
    pdf,
    pptx,
    read_file,
    related,
    rows,
    shape,
    slide_table,
    slide_xml,
    word_table,
    written,
    xlsx,
    zipped,
)

from hira.core.errors import ToolError
from hira.tools.charsets import decode_file, decode_text
from hira.tools.documents.archive import MEMBER
from hira.tools.documents.document import cut
from hira.tools.documents.plain import reflow
from hira.tools.file_kinds import LIMIT


def refusal(path: Path) -> str:
    with pytest.raises(ToolError) as caught:
        read_file(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_lines_that_were_broken_because_they_were_full_become_paragraphs():
    text = "The quick brown fox jumps over the lazy dog and then\nruns away into the deep dark forest where it lives.\n\n- item one\n- item two"
    assert reflow(text).split("\n")[0].endswith("and then runs away into the deep dark forest where it lives.")
    assert reflow(text).endswith("- item one\n- item two")


def test_text_is_found_in_every_common_charset():
    text = "Der Fluß ist 120 km lang, in Köln und Düsseldorf breit, und fließt nach Norden.\n" * 3
    for charset in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"):
        assert decode_file(text.encode(charset)) == text, charset


LEGACY = {
    ("cp1251", "koi8-r"): "Мельница на реке Волге была построена мастером Орловым, а билет стоит пять рублей.",
    ("cp1253",): "Ο μύλος στο ποτάμι χτίστηκε από έναν μάστορα, και το εισιτήριο κοστίζει πέντε ευρώ.",
    ("gbk",): "河边的磨坊由一位工匠建造，博物馆的门票价格是五元，星期一不开放。",
    ("big5",): "河邊的磨坊由一位工匠建造，博物館的門票價格是五元，星期一不開放。",
    ("shift_jis",): "川のほとりの水車小屋は職人によって建てられました。入場料は五百円です。",
    ("euc_kr",): "강가의 물레방아는 장인이 지었습니다. 박물관 입장료는 오천 원입니다.",
}
CENTRAL = "Młyn nad rzeką zbudował mistrz Żółkiewski, a wstęp kosztuje pięć złotych."


def test_a_file_in_an_older_encoding_is_recognised_and_named():
    for charsets, text in {
        **LEGACY,
        ("cp1250",): CENTRAL,
        ("cp1254",): "Müze bileti beş lira, değirmen şehrin dışında, çarşamba günü kapalı.",
    }.items():
        for charset in charsets:
            read, remark = decode_text(text.encode(charset)) or ("", "")
            assert read == text, charset
            assert "is not UTF-8; read as" in remark, charset


def test_western_languages_are_cp1252_without_a_remark():
    for text in (
        "Die Mühle in Köln: 20 °C, 5 m³/s – „außer“ sonntags",
        "Le musée coûte « cinq » euros à l’entrée, où l’œuvre…",
        "Møllen ved åen på Ærø",
        "El niño pagó 5 €, ¿sí? 1º",
        "O moinho não está à venda; são dez milhões",
    ):
        assert decode_text(text.encode("cp1252")) == (text, "")


def test_without_the_package_the_remark_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    text = LEGACY["cp1251", "koi8-r"]
    read, remark = decode_text(text.encode("cp1251")) or ("", "")
    assert read == text.encode("cp1251").decode("cp1252")
    assert "read as Windows-1252" in remark
    assert "pip install 'hira[files]'" in remark
    assert (decode_text(CENTRAL.encode("cp1250")) or [""])[0] == CENTRAL


def test_a_declared_charset_is_believed_if_it_is_one_of_text():
    for text, charset in (
        ('<?xml version="1.0" encoding="koi8-r"?><a>Волга</a>', "koi8-r"),
        ("# -*- coding: koi8-r -*-\nname = 'Волга'\n", "koi8-r"),
        ('<meta charset="iso-2022-jp"><p>東京</p>', "iso-2022-jp"),
        ("# coding: ascii\nname = 'Zoë'\n", "cp1252"),
        ("<meta charset=undefined>Zoë +AGE-", "cp1252"),
        ("<meta charset=no-such>Zoë +AGE-", "cp1252"),
    ):
        assert decode_file(text.encode(charset)) == text


def test_a_stray_zero_in_a_log_is_dropped_and_many_make_a_binary_file():
    line = b"12:00 the pump started in K\xc3\xb6ln\n"
    assert decode_file(line * 100 + b"\0" + line * 100) == line.decode() * 200
    assert decode_file((line + b"\0") * 100) is None


PEOPLE = {"count": 2, "people": [{"name": "Ada", "born": {"year": 1815}, "tags": ["a", "b"]}, {"name": "Alan"}]}
CELLS = [
    {"cell_type": "markdown", "source": ["# Fit\n", "A line."]},
    {"cell_type": "code", "source": "print(6*7)", "outputs": [{"output_type": "stream", "text": ["42\n"]}]},
]
PORTS = "<html><head><title>Ports</title><style>p{}</style></head><body><main><p>Rotterdam.</p></main></body></html>"


def test_text_of_every_kind_becomes_lines_that_stand_alone(tmp_path):
    for name, content, title, text in (
        ("a.html", PORTS, "Ports", "Rotterdam."),
        (
            "s.csv",
            'Region,Sales,Note\nNorth,120,"a, b"\nSouth,80,\n',
            "s",
            "Region: North | Sales: 120 | Note: a, b\nRegion: South | Sales: 80",
        ),
        (
            "c.csv",
            "city;area\nOslo;454,12\nBergen;464,71",
            "c",
            "city: Oslo | area: 454,12\ncity: Bergen | area: 464,71",
        ),
        ("n.csv", "1,2\n3,4\n", "n", "1 | 2\n3 | 4"),
        (
            "p.json",
            json.dumps(PEOPLE),
            "p",
            "count: 2\n\n## people\n\nname: Ada | born.year: 1815 | tags: a, b\nname: Alan",
        ),
        ("l.jsonl", '{"a": 1, "b": null}\nbroken {\n[1, 2]\n', "l", "a: 1 | b: null\nbroken {\n1, 2"),
        ("half.jsonl", '{"note": "cut \\ud83d"}', "half", "note: cut \ufffd"),
        (
            "n.ipynb",
            json.dumps({"cells": CELLS}),
            "Fit",
            "# Fit\nA line.\n\n```\nprint(6*7)\n```\n\nOutput:\n42\n",
        ),
    ):
        document = read_file(written(tmp_path / name, content))
        assert (document.title, document.text) == (title, text)


RST = """Mills
=====

The mill has been here for longer than anybody in the town can
remember.

Wheel
-----

It is red [1]_.

.. code-block:: python

   turn()
"""
ORG = """#+TITLE: Mills
#+STARTUP: overview
* Wheel                                   :oak:
:PROPERTIES:
:ID: 7
:END:
It is red.
** TODO Teeth
| Wheel | Teeth |
|-------+-------|
| big   | 90    |
| small | 12    |
#+BEGIN_SRC python
* turn()
#+END_SRC
"""
TEX = r"""\documentclass{article}
\usepackage{booktabs}
\title{Mills of \'Evora}
\begin{document}
\section{Wheel} % a remark
It is \textbf{red}, 5\% oak~\cite{oak} and $\frac{a_1}{b}$; \c{c}a va, \draw.
\begin{tabular}{lr}
\toprule
Wheel & Teeth \\ \midrule
big & 90 \\
small & 12 \\
\end{tabular}
\end{document}
never shown
"""


@pytest.mark.parametrize(
    ("name", "content", "title", "passages"),
    [
        (
            "m.rst",
            RST,
            "Mills",
            [
                ("line 4", "The mill has been here for longer than anybody in the town can remember."),
                ("section Wheel, lines 10–14", "It is red [1]_.\n\n.. code-block:: python\n\n   turn()"),
            ],
        ),
        (
            "m.org",
            ORG,
            "Mills",
            [
                ("section Wheel, line 7", "It is red."),
                (
                    "section Wheel › Teeth, lines 11–15",
                    "Wheel: big | Teeth: 90\nWheel: small | Teeth: 12\n```\n* turn()\n```",
                ),
            ],
        ),
        (
            "m.tex",
            TEX,
            "Mills of Évora",
            [
                (
                    "section Wheel, lines 6–11",
                    "It is red, 5% oak and $\\frac{a_1}{b}$; ça va, .\nWheel: big | Teeth: 90\nWheel: small | Teeth: 12",
                )
            ],
        ),
    ],
)
def test_markup_is_read_with_its_headings_tables_and_lines(tmp_path, name, content, title, passages):
    document = read_file(written(tmp_path / name, content))
    assert document.title == title
    shown = [(piece.locate(title), piece.text) for piece in cut(document)]
    assert [(place, " ".join(text.split())) for place, text in shown] == [
        (place, " ".join(text.split())) for place, text in passages
    ]


def test_a_passage_of_a_notebook_names_its_cells(tmp_path):
    cells = [*CELLS, {"cell_type": "markdown", "source": "## Wheel\n\nIt is red.\nIt turns."}]
    pieces = cut(read_file(written(tmp_path / "n.ipynb", json.dumps({"cells": cells}))))
    assert [piece.locate("Fit") for piece in pieces] == ["cells 1–2", "section Wheel, cell 3"]


def test_a_mail_names_its_sender_date_and_attachments_and_shows_its_text(tmp_path):
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Wheel für Évora", "Ada <ada@example.org>", "bo@example.org"
    mail["Date"] = "Mon, 04 May 2026 10:00:00 +0000"
    mail.set_content("The wheel is red.\n")
    mail.add_alternative("<p>The wheel is <b>blue</b>.</p>", subtype="html")
    mail.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="wheel.pdf")
    document = read_file(written(tmp_path / "m.eml", bytes(mail)))
    assert document.title == "Wheel für Évora"
    assert document.text == (
        "Subject: Wheel für Évora\nFrom: Ada <ada@example.org>\nTo: bo@example.org\n"
        "Date: Mon, 04 May 2026 10:00:00 +0000\n\nThe wheel is red.\n\n\nAttachment: wheel.pdf"
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            b"Content-Type: text/html; charset=utf-8\n\n<html><body><p>The wheel is red.</p></body></html>",
            "The wheel is red.",
        ),
        (b"Content-Type: text/plain; charset=no-such\n\nK\xf6ln", "Köln"),
        (b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n!!!!", ""),
    ],
)
def test_a_mail_of_html_or_with_wrong_headers_is_read_as_far_as_possible(tmp_path, body, text):
    assert read_file(written(tmp_path / "m.eml", b"From: a@example.org\n" + body)).text == (
        "From: a@example.org" + (f"\n\n{text}" if text else "")
    )


def test_hostile_mails_are_refused_in_one_line_or_read(tmp_path):
    deep = b"".join(
        b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (level, level) for level in range(1_200)
    )
    assert refusal(written(tmp_path / "deep.eml", deep))
    assert (
        refusal(written(tmp_path / "no.eml", b"\0\1\2" * 100))
        == "no.eml is not a mail: it has neither a sender nor a text"
    )


def test_a_word_document_keeps_headings_lists_tables_notes_and_their_order(tmp_path):
    body = (
        paragraph("Annual report", "Titel")
        + "<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:r><w:tab/>"
        + '<w:t>word</w:t><w:footnoteReference w:id="2"/></w:r></w:p>'
        + paragraph("Sales", "berschrift2")
        + paragraph("first", listed=True)
        + paragraph("second", listed=True)
        + word_table([["Region", "Sales"], ["North", "120"], ["South", "80"]])
        + paragraph("The end.")
    )
    notes = f'<w:footnotes xmlns:w="{WORD}"><w:footnote w:id="2">{paragraph("See page 7.")}</w:footnote></w:footnotes>'
    document = read_file(docx(tmp_path / "r.docx", body, more={"word/footnotes.xml": notes}))
    assert document.title == "Annual report"
    assert document.text == (
        "# Annual report\n\nnew\tword[^2]\n\n## Sales\n\n- first\n- second\n\n"
        "Region: North | Sales: 120\nRegion: South | Sales: 80\n\nThe end.\n\n[^2] See page 7."
    )


def test_struck_out_and_hidden_text_of_a_word_document_is_not_read(tmp_path):
    def run(text, about):
        return f"<w:r><w:rPr>{about}</w:rPr><w:t>{text} </w:t></w:r>"

    marks = ("<w:strike/>", "<w:dstrike/>", '<w:vanish w:val="true"/>', '<w:rStyle w:val="Later"/>')
    gone = "".join(run("30 crowns", mark) for mark in marks)
    kept = run("45", '<w:strike w:val="0"/>') + run("crowns", '<w:rStyle w:val="Later"/><w:strike w:val="false"/>')
    body = f"<w:p>{gone}{kept}</w:p>" + paragraph("Draft of May", "Later") + paragraph("Paid in June.")
    body += word_table([["Day", f"<w:p>{gone}{run('Price', '<w:b/>')}</w:p>"], ["Monday", "5"]])
    styles = (
        f'<w:styles xmlns:w="{WORD}"><w:style w:styleId="Gone"><w:rPr><w:strike/></w:rPr></w:style>'
        '<w:style w:styleId="Later"><w:basedOn w:val="Gone"/></w:style></w:styles>'
    )
    notes = f'<w:footnotes xmlns:w="{WORD}"><w:footnote w:id="2"><w:p>{gone}{run("See below.", "")}</w:p></w:footnote></w:footnotes>'
    more = {"word/styles.xml": styles, "word/footnotes.xml": notes}
    text = read_file(docx(tmp_path / "p.docx", body, more=more)).text
    assert text == "45 crowns\n\nPaid in June.\n\nDay: Monday | Price: 5\n\n[^2] See below."


@pytest.mark.parametrize("title", ["(anonymous)", "untitled", "(Untitled)", "Untitled 3", "anonymous"])
def test_a_title_that_a_program_filled_in_is_none(tmp_path, title):
    assert read_file(pdf(tmp_path / "harbour.pdf", ["The pier is long."], title=title)).title == "harbour"


def test_slides_come_in_the_order_of_the_presentation_with_tables_charts_and_notes(tmp_path):
    chart = (
        '<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"><c:ser><c:tx><c:strRef><c:strCache>'
        '<c:pt idx="0"><c:v>Sales</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache><c:pt idx="0"><c:v>2023</c:v></c:pt>'
        '<c:pt idx="1"><c:v>2024</c:v></c:pt></c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache><c:pt idx="0"><c:v>5</c:v></c:pt>'
        '<c:pt idx="1"><c:v>7</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:chartSpace>'
    )
    more = {
        "ppt/slides/_rels/slide2.xml.rels": related(
            ("notesSlide", "../notesSlides/n.xml"), ("chart", "/ppt/charts/c.xml")
        ),
        "ppt/notesSlides/n.xml": slide_xml("notes", shape("Say hello", "body") + shape("7", "sldNum")),
        "ppt/charts/c.xml": chart,
    }
    slides = [shape("Welcome", "ctrTitle") + shape("a\nb"), slide_table([["Region", "Sales"], ["North", "120"]])]
    document = read_file(pptx(tmp_path / "t.pptx", slides, more=more))
    assert [part.place for part in document.parts] == ["slide 1", "slide 2"]
    assert (
        document.parts[0].text
        == "## Welcome\n\na\nb\n\nChart:\ncategory: 2023 | Sales: 5\ncategory: 2024 | Sales: 7\n\nNotes: Say hello"
    )
    assert document.parts[1].text == "Region: North | Sales: 120"


SALES = "Region\tSold\tShare\nNorth\t1,120\t56 %\nSouth\t880\t44 %"
TEXT = "The shop grew in both of its regions last year, and sold more than\nin any year since it was founded in the old mill."


def test_rows_of_a_pdf_table_name_their_columns_between_the_text_around_them(tmp_path):
    path = pdf(tmp_path / "r.pdf", [f"{TEXT}\n{SALES}\nThe figures are of May.", "Second page."])
    document = read_file(path)
    assert document.parts[0].text == (
        f"{TEXT.replace(chr(10), ' ')}\n\nRegion: North | Sold: 1,120 | Share: 56 %\n"
        "Region: South | Sold: 880 | Share: 44 %\n\nThe figures are of May."
    )
    assert document.parts[1].text == "Second page."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Name\tValue\nsmall\tred\nlarge\tblue", "two columns of words may be names and values"),
        ("Region\tSold\tShare\nNorth\t1,120\t56 %", "a single row"),
        (
            (
                "The mill of the town is\told and its wheel is as\tred as the barn beside it\n"
                "and was built of oak in\tthe year when the river\trose over its banks and\n"
                "took the bridge with it\tas the parish book says\tand nobody knows better\n"
                "until the council finds\tthe plans of the bridge\tthat a clerk had drawn\n"
                "with the ink of a squid"
            ),
            "prose in columns",
        ),
        ("3\t4\t5\n6\t7\t8\n9\t10\t11", "numbers without a header"),
    ],
)
def test_columns_that_are_no_table_with_a_header_stay_as_the_page_shows_them(tmp_path, text, why):
    words = "".join(text.split())
    assert "".join(read_file(pdf(tmp_path / "p.pdf", [text])).parts[0].text.split()) == words, why


def test_a_cell_of_several_lines_and_an_empty_cell_stay_in_their_columns(tmp_path):
    text = "Region\tSold\tRemark\nNorth\t1,120\tgrew in\n\t\tMay\nSouth\t880\tfell\nWest\t\tclosed\nEast\t7\tnew"
    assert read_file(pdf(tmp_path / "r.pdf", [text])).parts[0].text.split("\n") == [
        "Region: North | Sold: 1,120 | Remark: grew in May",
        "Region: South | Sold: 880 | Remark: fell",
        "Region: West | Remark: closed",
        "Region: East | Sold: 7 | Remark: new",
    ]


def test_the_rows_of_a_pdf_table_have_its_page_as_their_place(tmp_path):
    path = pdf(tmp_path / "r.pdf", ["Front page.", SALES])
    pieces = cut(read_file(path))
    assert [(piece.locate("r"), piece.text) for piece in pieces][1] == (
        "p. 2",
        "Region: North | Sold: 1,120 | Share: 56 %\nRegion: South | Sold: 880 | Share: 44 %",
    )


def test_rows_of_a_sheet_name_their_columns_and_show_values_with_formulas(tmp_path):
    sheet = rows(
        ["Sales of the year"],
        ["Region", "Sales", "Share", "Day"],
        ["North", 120, '<c s="1"><v>0.6</v></c>', '<c s="2"><v>45292</v></c>'],
        ["South", 80, '<c s="1"><v>0.4</v></c>', '<c s="2"><v>45293.5</v></c>'],
        ["Total", "<c><f>SUM(B3:B4)</f><v>200</v></c>"],
    )
    document = read_file(xlsx(tmp_path / "s.xlsx", {"Sales": sheet}, formats=[0, 9, 14]))
    assert document.parts[0].place == "sheet Sales"
    assert document.parts[0].text.splitlines() == [
        "row 1: Sales of the year",
        "columns: A = Region, B = Sales, C = Share, D = Day",
        "row 3: Region: North | Sales: 120 | Share: 60% | Day: 2024-01-01",
        "row 4: Region: South | Sales: 80 | Share: 40% | Day: 2024-01-02 12:00:00",
        "row 5: Region: Total | Sales: 200 (=SUM(B3:B4))",
    ]


def test_a_book_is_read_chapter_by_chapter(tmp_path):
    chapters = [("Dawn", "<p>The sun rose over the bay.</p>"), ("Dusk", "<p>The sun set behind the hills.</p>")]
    document = read_file(epub(tmp_path / "b.epub", chapters, title="Days"))
    assert document.title == "Days"
    assert [part.place for part in document.parts] == ["chapter 1: Dawn", "chapter 2: Dusk"]
    assert "The sun set behind the hills." in document.parts[1].text


def test_a_row_that_word_repeats_on_every_page_names_the_columns_of_a_table_of_words(tmp_path):
    table = word_table([["Pupil", "Teacher"], ["Dana", "Erik"]])
    assert read_file(docx(tmp_path / "a.docx", table)).text == "Pupil | Teacher\nDana | Erik"
    marked = table.replace("<w:tr>", "<w:tr><w:trPr><w:tblHeader/></w:trPr>", 1)
    assert read_file(docx(tmp_path / "b.docx", marked)).text == "Pupil: Dana | Teacher: Erik"


def test_a_pdf_is_read_page_by_page_words_are_joined_and_a_page_without_text_is_marked(tmp_path):
    broken = "The committee of the southern provinces discussed an exam-\nple of the new rules for the harbours of it."
    document = read_file(pdf(tmp_path / "a.pdf", ["The first page (of three)", "", broken], title="Three pages"))
    assert document.title == "Three pages"
    assert [(part.place, part.text, part.media) for part in document.parts] == [
        ("page 1", "The first page (of three)", False),
        ("page 2", "", True),
        ("page 3", broken.replace("-\n", ""), False),
    ]


def test_names_in_an_archive_are_told_one_a_line_and_lead_nowhere(tmp_path):
    names = ("../../etc/passwd", "/abs/x", "C:\\x", "a\nb.txt")
    text = read_file(zipped(tmp_path / "a.zip", dict.fromkeys(names, "x"))).text
    assert [line.partition(" | ")[0] for line in text.splitlines()[1:]] == [*names[:3], "a b.txt"]
    assert [one.name for one in tmp_path.iterdir()] == ["a.zip"]


def test_a_pdf_that_does_not_say_where_its_parts_are_is_read(tmp_path):
    whole = pdf(tmp_path / "a.pdf", ["The first page"]).read_bytes()
    table, end = whole.index(b"xref"), whole.index(b"startxref")
    for lost in (whole[:end], whole[:table] + whole[whole.index(b"trailer") : end]):
        assert "The first page" in read_file(written(tmp_path / "b.pdf", lost)).text


def test_what_cannot_be_read_is_one_clear_line(tmp_path):
    assert "does not exist" in refusal(tmp_path / "none.txt")
    assert "is a folder" in refusal(tmp_path)
    with (tmp_path / "big.txt").open("wb") as file:
        file.truncate(LIMIT + 1)
    assert "too big" in refusal(tmp_path / "big.txt")
    assert "binary" in refusal(written(tmp_path / "x.bin", bytes(range(256))))
    assert "multimodal" in refusal(written(tmp_path / "x.png", b"\x89PNG"))
    assert "save it as .docx" in refusal(written(tmp_path / "x.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))
    assert "Rich Text" in refusal(written(tmp_path / "x.rtf", r"{\rtf1\ansi hello}"))
    assert "damaged" in refusal(written(tmp_path / "x.xlsx", "not a zip"))
    assert "b.pdf is damaged" in refusal(written(tmp_path / "b.pdf", b"%PDF-" + bytes(200)))
    assert "not a Word document" in refusal(zipped(tmp_path / "x.docx", {"a": "b"}))


def test_what_a_password_protects_says_so(tmp_path):
    from pypdf import PdfReader, PdfWriter

    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le")
    assert refusal(written(tmp_path / "s.xlsx", ole)) == "s.xlsx is protected by a password"
    assert "old Office format" in refusal(written(tmp_path / "t.xlsx", ole[:600]))
    path = docx(tmp_path / "r.docx", paragraph("x"))
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        data[archive.getinfo("word/document.xml").header_offset + 6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert "password" in refusal(written(path, bytes(data)))
    for name, password in (("open.pdf", ""), ("locked.pdf", "secret")):
        writer = PdfWriter(clone_from=PdfReader(pdf(tmp_path / "plain.pdf", ["Open to read"])))
        writer.encrypt(password, "owner", algorithm="RC4-128")
        writer.write(tmp_path / name)
    assert "Open to read" in read_file(tmp_path / "open.pdf").text
    assert refusal(tmp_path / "locked.pdf") == "locked.pdf is protected by a password"


def test_what_would_grow_while_it_is_read_is_refused(tmp_path):
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    text = f'<?xml version="1.0" encoding="utf-16"?>{bomb}<w:document xmlns:w="{WORD}"><w:p><w:r><w:t>&b;</w:t></w:r></w:p></w:document>'
    path = zipped(tmp_path / "r.docx", {"word/document.xml": text.encode("utf-16")})
    assert "declares a document type" in refusal(path)
    path = zipped(tmp_path / "s.docx", {"word/document.xml": b"<a>" + b" " * (MEMBER // 4) + b"</a>"})
    assert path.stat().st_size < 100_000
    assert "unpacks to too much data" in refusal(path)


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("plan.md", "# Plan 2022\n\nA.\n\n## Part\n\nB.\n\n# Plan 2023\n\nC.\n", "plan"),
        ("plan.md", "# Plan\n\n## Part\n\nB.\n\n## Other\n\nC.\n", "Plan"),
        ("plan.html", "<h1>North</h1><p>A.</p><h1>South</h1><p>B.</p>", "plan"),
        ("plan.html", "<title>Ports</title><h1>North</h1><p>A.</p><h1>South</h1><p>B.</p>", "Ports"),
    ],
)
def test_a_heading_among_others_of_its_level_is_no_title(tmp_path, name, text, title):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_file(tmp_path / name).title == title
