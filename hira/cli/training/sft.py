"""`hira-train sft`: a cold start."""

import argparse

from hira.cli import OK
from hira.cli.shell import Shell
from hira.cli.training.configured import going
from hira.trainers import assembling, profile
from hira.trainers.installed import check_installed, check_wanted
from hira.trainers.preflight import check_there


def sft(args: argparse.Namespace, shell: Shell) -> int:
    found = going(args, shell)
    plan = found.plan
    check_installed()
    check_wanted(plan.configuration.model.bits, plan.configuration.train.report_to)
    from hira.trainers.teaching import last_saved, learned

    check_there(plan, shell.folder, conversations=True)
    places = [last_saved(place) for place in sorted(plan.folder.glob("sft/*"))]
    saved = next((place for place in reversed(places) if place), None)

    def begun() -> None:
        assembling.keep(plan)
        shell.tell(f"hira-train: {found.told(saved, plan.configuration.sft.save_every)}")

    learned(plan, shell.folder, resume=found.begun, begun=begun, tell=lambda line: shell.tell(f"hira-train: {line}"),
            stepped=lambda one: shell.tell(f"  step {one['step']}: loss {one['loss']:.4f}"))  # fmt: skip
    profile.write(plan)
    starts = " ".join(f"model.start.{name}={place}" for name, place in profile.adapters_of(plan.folder).items())
    shell.say(f"hira-train grpo … {starts}")
    return OK
