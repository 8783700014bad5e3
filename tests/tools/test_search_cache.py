from pathlib import Path

import pytest

from hira.core.errors import ToolError
from hira.tools.search import Cache, Cached, Hit

HITS = [
    Hit("Kama", "https://a.example/kama", "a “long” river", 1, "one", "2024"),
    Hit("B", "https://b.example/", "", 2, "one"),
]


class Counted:
    name = "one"

    def __init__(self, *answers: list[Hit] | ToolError) -> None:
        self.answers, self.asked = list(answers), 0

    async def search(self, query: str, n: int) -> list[Hit]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, ToolError):
            raise answer
        return answer


async def test_a_query_is_answered_from_disk_also_by_a_later_process_until_its_answer_is_too_old(
    tmp_path: Path,
) -> None:
    path, now, backend = tmp_path / "deep" / "searches.sqlite", [1000.0], Counted(HITS)
    for after, query, n, asked in (
        (0, "The Kama", 5, 1),
        (0, " the  kama ", 5, 1),
        (0, "The Kama", 6, 2),
        (59, "The Kama", 5, 2),
        (2, "The Kama", 5, 3),
    ):
        now[0] += after
        cache = Cache(path, seconds=60, clock=lambda: now[0])
        assert await Cached(backend, cache).search(query, n) == HITS
        assert backend.asked == asked
        cache.close()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_servers_of_one_name_have_answers_of_their_own(tmp_path: Path) -> None:
    cache, first, second = Cache(tmp_path / "searches.sqlite"), Counted(HITS), Counted(HITS[:1])
    assert await Cached(first, cache, "http://one.example").search("x", 5) == HITS
    assert await Cached(second, cache, "http://two.example").search("x", 5) == HITS[:1]
    cache.close()


async def test_failures_and_empty_answers_are_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "searches.sqlite")
    kept = Cached(Counted(ToolError("down"), [], HITS), cache)
    with pytest.raises(ToolError):
        await kept.search("x", 5)
    assert await kept.search("x", 5) == []
    assert await kept.search("x", 5) == HITS
    cache.close()


async def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    path, backend = tmp_path / "searches.sqlite", Counted(HITS)
    path.write_bytes(b"no database at all " * 500)
    cache = Cache(path)
    for _ in range(2):
        assert await Cached(backend, cache).search("x", 5) == HITS
    assert backend.asked == 1
    cache.close()


async def test_where_the_disk_fails_the_service_is_asked(tmp_path: Path) -> None:
    cache, backend = Cache(tmp_path / "searches.sqlite"), Counted(HITS)
    cache.close()
    for _ in range(2):
        assert await Cached(backend, cache).search("x", 5) == HITS
    assert backend.asked == 2
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    with pytest.raises(ToolError, match="cannot be kept"):
        Cache(tmp_path / "file" / "searches.sqlite")
