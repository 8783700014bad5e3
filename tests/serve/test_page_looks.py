"""Answers in Markdown, the keyboard, and runs that are gone, in a real browser."""

import pytest
from browser import Browser, missing
from serving import ASK, go, served, until

from hira.runtime.settings import Settings
from hira.testing import ScriptedPolicy

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(bool(missing()), reason=missing())]
QUESTION = "How high is the tower of Alta?"


MARKDOWN = """## Height

The **tower** of Alta, `tower_of_alta`, is *31 metres* high; 2 * 3 * 4 and snake_case_names stay.

1. first
   - inner **one**
2. second
goes on

| what | metres |
|---|---|
| tower | 31 |

> said by <b>many</b>

```
if a < b: **no**
```
"""


LONG = {
    "quotes": "> " * 5000 + "end",
    "strong": "**a " * 3000 + "end" + "**" * 3000,
    "nested links": "[" * 5000 + "end" + "](https://a.example)" * 5000,
    "brackets": "[" * 100_000 + "end",
    "never closed": " *a _b **c`" * 15_000 + "end",
    "many words": "`a`" * 60_000 + "end",
    "too long": "*a* " * 60_000 + "end",
}
SHOWN = """
    const { RunView } = await import('/run.js'), before = performance.now();
    const view = new RunView('one');
    view.take({ event: 'SourceRead', source: 's1', location: 'https://towers.example/alta', title: 'Alta' });
    view.ended({ status: 'answered', answer: { answer: arguments[0], citations: [], sources: [] } });
    const took = performance.now() - before;
    let deepest = 0;
    for (let level = [view.answer]; level.length && deepest < 100; deepest += 1) level = level.flatMap(one => [...one.children]);
    const links = [...view.answer.querySelectorAll('a')].map(one => [one.textContent, one.href]);
    return { text: view.answer.textContent, took, deepest, links };
"""
LINKS = (
    "[The tower](https://towers.example/alta), [my *bank*](https://thief.example/x?y=1), "
    "[https://towers.example/bo](https://towers.example/bo)"
)


@pytest.mark.parametrize(("width", "ends"), [(390, "\n"), (1280, "\r\n")])
def test_an_answer_in_markdown_is_shown_as_it_is_meant_and_any_other_is_shown_too(
    driven: Browser, settings: Settings, width: int, ends: str
) -> None:
    with served(settings, {"*": ScriptedPolicy([MARKDOWN.replace("\n", ends)])}) as server:
        driven.size(width, 800)
        go(driven, f"{server.url}/")
        driven.run(
            "for (const name of ['hira', 'direct']) document.querySelector(`#workflows [value=${name}]`).click()"
        )
        driven.run(ASK, QUESTION)
        until(driven, "return document.querySelector('.answer:not([hidden])')?.textContent")

        def texts(selector: str) -> list[str]:
            found = driven.run(
                "return [...document.querySelectorAll(arguments[0])].map(one => one.textContent)", selector
            )
            return [" ".join(one.split()) for one in found]

        assert texts(".answer h3") == ["Height"]
        assert texts(".answer > p:not(.why)") == [
            "The tower of Alta, tower_of_alta, is 31 metres high; 2 * 3 * 4 and snake_case_names stay."
        ]
        assert texts(".answer :is(strong, p > em, p > code)") == ["tower", "tower_of_alta", "31 metres", "one"]
        assert texts(".answer ol > li > p") == ["first", "second goes on"]
        assert texts(".answer ol ul > li") == ["inner one"]
        assert texts(".answer td") == ["tower", "31"]
        assert texts(".answer blockquote") == ["said by <b>many</b>"]
        assert texts(".answer pre") == ["if a < b: **no**"]
        assert driven.run("return document.documentElement.scrollWidth") <= width
        if width > 1000:
            any_text_is_shown_at_once_and_whole(driven)
            only_what_was_read_can_be_clicked(driven)
            what_cannot_be_laid_out_is_shown_as_it_is_written(driven)


def any_text_is_shown_at_once_and_whole(driven: Browser) -> None:
    for name, text in LONG.items():
        shown = driven.run(SHOWN, text)
        assert "end" in shown["text"], name
        assert shown["took"] < 2000, (name, shown["took"])
        assert shown["deepest"] < 50, name


def only_what_was_read_can_be_clicked(driven: Browser) -> None:
    shown = driven.run(SHOWN, LINKS)
    assert shown["links"] == [["The tower", "https://towers.example/alta"]]
    assert shown["text"] == "The tower, my bank (https://thief.example/x?y=1), https://towers.example/bo"


def what_cannot_be_laid_out_is_shown_as_it_is_written(driven: Browser) -> None:
    early = (
        "const { RunView } = await import('/run.js'); return new RunView('one').answered('*so* [s1]')[0].textContent"
    )
    assert driven.run(early) == "*so* [s1]"  # what its citation is like is not known yet


def test_the_keyboard_alone_is_enough(driven: Browser, settings: Settings) -> None:
    enter, tab, escape = "\ue007", "\ue004", "\ue00c"
    focused = "return document.activeElement.id || document.activeElement.className || document.activeElement.tagName"
    with served(settings) as server:
        go(driven, f"{server.url}/")
        driven.press(escape, "/")
        assert driven.run(focused) == "question"
        driven.press(*QUESTION, enter)
        until(driven, "return document.querySelector('.answer:not([hidden])')?.textContent")
        assert driven.run("return document.querySelector('h1').textContent") == QUESTION
        for _ in range(40):
            driven.press(tab)
            if str(driven.run(focused)).startswith("cite"):
                break
        assert "source 1, supported" in driven.run("return document.activeElement.getAttribute('aria-label')")
        assert driven.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
        driven.press(enter)
        assert driven.run(focused) == "close"
        driven.press(escape)
        assert str(driven.run(focused)).startswith("cite")
