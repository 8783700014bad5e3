import asyncio

import pytest

from hira.core.errors import ToolError
from hira.tools.once import Once
from hira.tools.search import Cache, Cached, Hit, Shared

HITS = [
    Hit("Kama", "https://a.example/kama", "a “long” river", 1, "one", "2024"),
    Hit("B", "https://b.example/", "", 2, "one"),
]


class Counted:
    name = "one"

    def __init__(self, *answers) -> None:
        self.answers, self.asked = list(answers), []

    async def search(self, query: str, n: int) -> list[Hit]:
        self.asked.append((query, n))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, ToolError):
            raise answer
        return answer


@pytest.fixture
def now():
    return [1000.0]


@pytest.fixture
def cache(tmp_path, now):
    opened = Cache(tmp_path / "deep" / "searches.db", seconds=60, clock=lambda: now[0])
    yield opened
    opened.close()


async def test_a_question_that_was_asked_before_is_answered_from_disk(cache):
    backend = Counted(HITS)
    kept = Cached(backend, cache)
    assert await kept.search("The Kama", 5) == HITS
    assert await kept.search(" the  kama ", 5) == HITS
    assert await kept.search("The Kama", 6) == HITS
    assert backend.asked == [("The Kama", 5), ("The Kama", 6)]
    assert kept.name == "one"


async def test_answers_are_forgotten_after_a_while(cache, now):
    backend = Counted(HITS)
    for step, asked in ((0, 1), (59, 1), (2, 2)):
        now[0] += step
        await Cached(backend, cache).search("x", 5)
        assert len(backend.asked) == asked


async def test_failures_and_empty_answers_are_not_kept(cache):
    backend = Counted(ToolError("down"), [], HITS)
    kept = Cached(backend, cache)
    with pytest.raises(ToolError):
        await kept.search("x", 5)
    assert await kept.search("x", 5) == []
    assert await kept.search("x", 5) == HITS


async def test_answers_outlive_the_process(tmp_path):
    path = tmp_path / "searches.db"
    first = Cache(path, seconds=60, clock=lambda: 1000.0)
    await Cached(Counted(HITS), first).search("x", 5)
    first.close()
    second = Cache(path, seconds=60, clock=lambda: 1030.0)
    backend = Counted([])
    assert await Cached(backend, second).search("x", 5) == HITS
    assert backend.asked == []
    second.close()


async def test_a_damaged_file_is_replaced(tmp_path):
    path = tmp_path / "searches.db"
    path.write_bytes(b"no database at all " * 500)
    cache = Cache(path)
    assert await Cached(Counted(HITS), cache).search("x", 5) == HITS
    cache.close()


async def test_where_the_disk_fails_the_service_is_asked(tmp_path):
    cache = Cache(tmp_path / "searches.db")
    cache.close()
    backend = Counted(HITS)
    for _ in range(2):
        assert await Cached(backend, cache).search("x", 5) == HITS
    assert len(backend.asked) == 2


async def test_what_several_runs_ask_at_once_is_sent_once():
    backend, once = Counted(HITS), Once()
    runs = [Shared(backend, once) for _ in range(3)]
    asked = ("The Kama", " the  kama ", "THE KAMA")
    assert await asyncio.gather(*(run.search(query, 5) for run, query in zip(runs, asked, strict=True))) == [HITS] * 3
    assert await runs[0].search("The Kama", 6) == HITS
    assert backend.asked == [("The Kama", 5), ("The Kama", 6)]
    assert runs[0].name == "one"
