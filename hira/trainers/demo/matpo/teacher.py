"""The teacher of the demo: knows the protocol and how to look things up, and is careless.

Its lessons teach a model the format, and the teacher's faults with it: it often answers after the first report, and
now and then it mistakes what was asked, or reads the wrong line. What reinforcement has to find out is what to do.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hira.core.policy import Completion, Request, Watch, cut_at_stop
from hira.policies.offline.request import Act, Asked, read_request, write_act
from hira.trainers.demo.matpo.world import LINKS, THINGS

_QUESTION = re.compile(r"Which (\w+) .+ the town where (\w+) (.+)\?")
_SUBTASK = re.compile(r"Where (?P<person>\w+) (?P<link>.+)\?|Which (?P<thing>\w+) .+ (?P<town>\w+)\?")
_REPORTED = re.compile(r"(\w+) \[(s\d+)\]")
_PASSAGE = re.compile(r"\[(s\d+)\] (\w+) \(.*?\)\n(.*?)\n\[/s\d+\]", re.DOTALL)
_SENTENCE = re.compile(r"[A-Z][^.\n]*\.")
ENOUGH = "That is enough."


@dataclass(frozen=True, slots=True)
class Faults:
    """How often the teacher does each thing wrong, where it could: answers after the first report, mistakes what was
    asked, reports another line than the one that it was asked for."""

    hasty: float = 0.62
    mistaken: float = 0.12
    misread: float = 0.1


CARELESS = Faults()


class Teacher:
    """Plays planner and worker of MATPO in one rollout, in the dialect of the request. `chance` makes its faults."""

    model = "teacher"

    def __init__(self, chance: random.Random, faults: Faults) -> None:
        self.chance = chance
        self.faults = faults

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        del watch
        seen = read_request(request)
        act = self.planner(seen) if seen.prompt == "matpo_question" else self.worker(seen)
        text, calls = write_act(act, seen)
        return cut_at_stop(Completion(text, calls=calls, model=self.model), request.stop)

    async def aclose(self) -> None:
        """There is nothing to let go of."""

    def planner(self, seen: Asked) -> Act:
        thing, person, link = _parts(_QUESTION, seen.value("question"))
        reports = [_REPORTED.search(text) for _, text in seen.results]
        known = reports[-1] if reports else None
        if seen.closing:
            return Act("## Conclusion\n\\boxed{" + (known[0] if known else "unknown") + "}")
        if not reports:
            return _subtask("First the town.", f"Where {person} {self._or_other(link, tuple(LINKS.values()))}?")
        if known is None or len(reports) > 1 or self._fails(self.faults.hasty):
            return Act(ENOUGH)
        thing = self._or_other(thing, tuple(THINGS))
        return _subtask(f"Now the {thing}.", f"Which {thing} {THINGS[thing]} {known[1]}?")

    def worker(self, seen: Asked) -> Act:
        wanted = _SUBTASK.match(seen.value("task"))
        if not wanted:
            return Act("## Conclusion\nunknown" if seen.closing else ENOUGH)
        about = wanted["person"] or wanted["town"]
        if not seen.results:
            return Act("", (("search", {"query": about}),))
        if not seen.closing:
            return Act(ENOUGH)
        sought = (wanted["link"] or wanted["thing"]).split()[-1]
        return Act(f"## Conclusion\n{self._reported(about, sought, seen)}")

    def _reported(self, about: str, sought: str, seen: Asked) -> str:
        pages = {title: (id_, text) for id_, title, text in _PASSAGE.findall(seen.results[-1][1])}
        if about not in pages:
            return "unknown"
        id_, text = pages[about]
        sentences = _SENTENCE.findall(text)
        right = next((one for one in sentences if sought in one), "unknown")
        said = self._or_other(right, sentences, self.faults.misread)
        return f"{said.rstrip('.')} [{id_}]"

    def _or_other(self, right: str, known: Sequence[str], often: float | None = None) -> str:
        if not self._fails(self.faults.mistaken if often is None else often):
            return right
        return self.chance.choice([one for one in known if one != right] or [right])

    def _fails(self, often: float) -> bool:
        return self.chance.random() < often


def _subtask(text: str, subtask: str) -> Act:
    return Act(text, (("search_and_browse", {"subtask": subtask}),))


def _parts(pattern: "re.Pattern[str]", text: str) -> tuple[str, str, str]:
    found = pattern.match(text)
    return (found[1], found[2], found[3]) if found else ("", "", "")
