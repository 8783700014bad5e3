"""`hira-train doctor`: known problems of training agents, in a configuration and in the files of a run.

All rules are rows of one table, `RULES`. A check is a function of `RunFiles`; it returns how bad things are (a
figure, or `FINE`, `ODD`, `BROKEN`; None if it could not be made) and describes it. Nothing here loads torch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

from hira.core.errors import count_of
from hira.policies.dialects import NATIVE
from hira.trainers.configuration import Configuration
from hira.trainers.preflight import explain_window
from hira.trainers.recipes import GRPO, RECIPES
from hira.workflows import WORKFLOWS

Verdict = Literal["ok", "warning", "fault", "unseen"]
FINE, ODD, BROKEN = 0.0, 1.0, 2.0
EARLY = 10
RECENT = 20


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """The verdict of one rule, `unseen` if it could not be checked; `found` then has the reason."""

    rule: str
    verdict: Verdict
    found: str
    fix: str = ""


@dataclass(frozen=True)
class RunFiles:
    """A configuration and the files of its run so far."""

    configuration: Configuration
    steps: Sequence[Mapping[str, Any]] = ()
    """Lines of metrics.jsonl, one for each update."""
    exams: Sequence[Mapping[str, Any]] = ()
    problems: int | None = None
    """The number of questions to train on."""
    repeated: int = 0
    """The number of questions that repeat another one."""
    shared: int = 0
    """The number of held-out questions among them."""
    unasked: int = 0
    """The number of questions that were left out because their answer is unknown."""
    window: int | None = None
    """The model's own, in tokens; None if the model is not on this machine."""
    notices: tuple[str, ...] | None = None
    """The changes that its chat template makes to conversations; None if the model is not on this machine."""

    @cached_property
    def roles(self) -> list[str]:
        names = {name for step in self.steps for name in step if name.endswith("/length")}
        return sorted(name.removesuffix("/length") for name in names)

    def values(self, name: str) -> list[float]:
        return [float(step[name]) for step in self.steps if isinstance(step.get(name), int | float)]

    def latest(self, name: str) -> float | None:
        """Return the mean of the metric over the last steps."""
        values = self.values(name)
        return fmean(values[-RECENT:]) if values else None

    def change(self, name: str) -> tuple[float, float]:
        """Return the metric's means over the first steps and over the last."""
        values = self.values(name)
        return fmean(values[:EARLY]), fmean(values[-EARLY:])


def read_notices(model: str, folder: Path) -> tuple[str, ...] | None:
    """Return the notices about the model's chat template; None if the model is not on this machine."""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return None
    from hira.policies.local.template import Template

    place = folder / Path(model).expanduser()
    name = str(place) if place.is_dir() else model
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError):
        return None
    return Template(tokenizer, where=f"model {name!r}").notices


class Look(NamedTuple):
    """The result of a check: its severity, None if it could not be made; a description, and a fix that replaces the
    rule's."""

    value: float | None
    observed: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A `check` with its limits: a value over `warning` is a warning, over `fault` a fault; `fix` is the advice for
    both."""

    name: str
    check: Callable[[RunFiles], Look]
    fix: str = ""
    warning: float = FINE
    fault: float = ODD

    def examine(self, seen: RunFiles) -> RuleFinding:
        value, observed, fix = self.check(seen)
        if value is None:
            return RuleFinding(self.name, "unseen", observed, fix)
        if value <= self.warning:
            return RuleFinding(self.name, "ok", observed)
        return RuleFinding(self.name, "fault" if value > self.fault else "warning", observed, fix or self.fix)


def explain_no_metrics(seen: RunFiles, steps: int = 1) -> Look:
    """Return the result of a check that needs the metrics of `steps` steps."""
    made = len(seen.steps)
    observed = "the run has made no step yet"
    if made:
        observed = f"{steps} steps are needed, {made} made" if made < steps else "the metrics lack the figure"
    return Look(None, observed, f"check later, during or after the run: hira-train doctor {seen.configuration.out}")


def explain_no_model(seen: RunFiles) -> Look:
    name = seen.configuration.model.name
    on_hub = name.count("/") == 1 and not name.startswith((".", "/", "~"))
    fix = f"hf download {name}" if on_hub else "copy its folder here, or correct model.name"
    return Look(None, f"the model {name!r} is not on this machine", fix)


# --- before a run: its configuration, data and chat template


def check_template(seen: RunFiles) -> Look:
    """Check the chat template: one that removes earlier thoughts breaks every row at every turn; one without tools has
    no native calls."""
    if seen.notices is None:
        return explain_no_model(seen)
    notices = [notice.replace("the chat template", "it", 1) for notice in seen.notices]
    if lost := [notice for notice in notices if "thought" in notice]:
        fix = "use a model whose template keeps earlier messages, or expect a row for each turn"
        return Look(ODD, lost[0], fix)
    mute = [notice for notice in notices if "tools" in notice]
    dialect = seen.configuration.settings.get("dialect")
    recipe = RECIPES.get(seen.configuration.recipe, GRPO)  # a recipe of the user's is not loaded to look at a run
    named = recipe.make or WORKFLOWS.get(str(seen.configuration.settings.get("workflow", recipe.workflow)))
    workflow = named() if named else None
    fix = 'set settings.dialect="tags", or use a model whose template has tools'
    if mute and dialect == NATIVE.name:
        return Look(BROKEN, f"settings.dialect is {dialect}, and {mute[0]}", fix)
    native = workflow is None or (workflow.takes_tools and getattr(workflow, "dialect", NATIVE.name) == NATIVE.name)
    if mute and not dialect and native:
        return Look(ODD, mute[0], fix)
    return Look(FINE, "; ".join(notices) or "each prompt continues the one before")


def check_questions(seen: RunFiles) -> Look:
    """Check for fewer questions than an update asks: one update would ask a question twice."""
    questions = seen.configuration.rollouts.questions
    if seen.problems is None:
        if not (seen.configuration.data.train or seen.configuration.data.sources):
            return Look(None, "the run names no file of questions")
        fix = "run the command in the folder in which the run was started"
        return Look(None, "the questions of the run were not found", fix)
    observed = f"{count_of(seen.problems, 'question')}, {questions} for each update"
    if seen.unasked:
        observed += f"; left out because their answer is unknown: {seen.unasked}"
    if seen.problems < questions:
        return Look(BROKEN, observed, "add questions, or ask fewer for each update: rollouts.questions")
    if seen.repeated:
        fix = "remove them: hira-train curate --stages duplicates"
        return Look(ODD, f"{observed}; {count_of(seen.repeated, 'duplicate')}", fix)
    laps = seen.configuration.train.steps * questions / seen.problems
    return Look(ODD, f"{observed}: each is seen {laps:.0f} times") if laps > 20 else Look(FINE, observed)


def check_held_out(seen: RunFiles) -> Look:
    """Check the exam: only an exam shows how a model does on questions that it was not trained on."""
    part = seen.configuration.data
    if not part.held_out:
        if seen.exams:
            return Look(FINE, f"{count_of(len(seen.exams), 'exam')} so far")
        fix = 'write held_out = "FILE" below [data]; without exams nothing shows whether the model really gets better'
        return Look(ODD, "there are none", fix)
    files = [part.held_out] if isinstance(part.held_out, str) else list(part.held_out.values())
    if part.train in files:
        return Look(BROKEN, "they are the training questions, in the same file", "divide it into two files")
    observed = f"{seen.shared} of them, in {' and '.join(files)}, are also trained on"
    return Look(float(bool(seen.shared)), observed, f"remove them from {part.train} or {' and '.join(files)}")


def check_window(seen: RunFiles) -> Look:
    """Check the window: a conversation ends at the model's own window, even if the run allows more, and its rollout
    fails."""
    window = seen.configuration.rollouts.window
    if seen.window is None:
        return explain_no_model(seen)
    wrong = explain_window(window, seen.window)
    observed = wrong or f"{window:,} tokens; the model itself takes {seen.window:,}"
    fix = f"set rollouts.window={seen.window}, or use a model with a longer one"
    return Look(BROKEN if wrong else FINE, observed, fix)


# --- during and after a run: metrics and exams


def of_run(name: str, template: str) -> Callable[[RunFiles], Look]:
    """Return a check of a metric's latest value; `template` formats it as `value`, or as a share as `percent`."""

    def check(seen: RunFiles) -> Look:
        value = seen.latest(name)
        if value is None:
            return explain_no_metrics(seen)
        return Look(value, template.format(value=value, percent=f"{100 * value:.0f} %"))

    return check


def of_roles(name: str, template: str) -> Callable[[RunFiles], Look]:
    """Return a check of the metric's latest value for the role with the largest one."""

    def check(seen: RunFiles) -> Look:
        known = {role: value for role in seen.roles if (value := seen.latest(f"{role}/{name}")) is not None}
        if not known:
            return explain_no_metrics(seen)
        role = max(known, key=known.__getitem__)
        return Look(known[role], template.format(role=role, value=known[role], percent=f"{100 * known[role]:.0f} %"))

    return check


PREFIXES = 0.05, 0.5
"""The share of rows from which on broken prefixes are a warning, and a fault."""


def check_prefixes(seen: RunFiles) -> Look:
    """Check for rows that begin in the middle of a conversation: the template rewrites earlier messages. If it does
    not, hira left out replies that it could not read: a warning, because a model that learns writes fewer of them."""
    broken = of_roles("broken", "{percent} of the rows of {role} begin in the middle of a conversation")(seen)
    if broken.value is None or seen.notices is None or any("thought" in notice for notice in seen.notices):
        return broken
    fix = "the template keeps earlier messages: hira left out replies that it could not read; begin with hira-train sft"
    return Look(min(broken.value, PREFIXES[1]), broken.observed, fix)


def check_singletons(seen: RunFiles) -> Look:
    """Check for groups of one, which compare with nothing: if most are, GRPO has become REINFORCE."""
    recent = seen.steps[-RECENT:]
    many = sum(step[name] for step in recent for name in step if name.startswith("group_size/"))
    alone = sum(step.get("group_size/1", 0) for step in recent)
    if not many:
        return explain_no_metrics(seen)
    return Look(alone / many, f"{100 * alone / many:.0f} % of the groups have only one member")


def check_failures(seen: RunFiles) -> Look:
    """Check the share of rollouts outside the update: they failed for outside reasons, or no judge scored them."""
    failed, unscored = seen.latest("infra_failed"), seen.latest("unscored")
    if failed is None or unscored is None:
        return explain_no_metrics(seen)
    observed = f"{100 * failed:.0f} % failed for reasons outside the model, {100 * unscored:.0f} % have no reward"
    return Look(max(failed, unscored), observed)


def check_entropy(seen: RunFiles) -> Look:
    """Check the entropy: a policy without it samples the same rollout many times, and soon no group has a signal."""
    if len(seen.values("entropy")) < 2 * EARLY:
        return explain_no_metrics(seen, 2 * EARLY)
    before, after = seen.change("entropy")
    odd = after < 0.1 * before or (after > 3 * before and after > 1)
    return Look(float(odd), f"{before:.3f} → {after:.3f} nats a token")


def check_hacking(seen: RunFiles) -> Look:
    """Check for a reward that rises while held-out answers get worse, or of which only the format part rises."""
    if len(seen.values("reward")) < 2 * EARLY:
        return explain_no_metrics(seen, 2 * EARLY)
    exams = [exam["greedy"] for exam in seen.exams if exam.get("greedy") is not None]
    before, after = seen.change("reward")
    observed = f"reward {after - before:+.2f}" + (f", held-out {exams[-1] - exams[0]:+.2f}" if len(exams) > 1 else "")
    if after - before > 0.05 and len(exams) > 1 and exams[-1] < exams[0] - 0.05:
        return Look(BROKEN, observed, "read rollouts.jsonl, and let another judge score held-out answers")
    changes = {name: seen.change(name) for name in seen.steps[-1] if name.startswith("reward/")}
    gain = {name: last - first for name, (first, last) in changes.items()}
    form = max((value for name, value in gain.items() if "format" in name), default=0.0)
    if form > 0.1 and gain.get("reward/accuracy", 0.0) < -0.02:
        observed = f"format {form:+.2f}, accuracy {gain['reward/accuracy']:+.2f}"
        return Look(ODD, observed, "the format alone earns the reward: lower reward.format")
    return Look(FINE, observed)


RULES: tuple[Rule, ...] = (
    Rule("chat template", check_template),
    Rule("questions", check_questions, "the model will memorise them: add questions, or make fewer steps"),
    Rule("held-out questions", check_held_out),
    Rule("window", check_window),
    Rule("prefixes", check_prefixes,
         "check the chat template: it rewrites earlier messages", *PREFIXES),
    Rule("tokens", of_run("rows_dropped", "{value:.2f} rows of a rollout lack matching log-probabilities"),
         "the sampler omits ids or log-probabilities; use another version of it", 0.0, 0.2),
    Rule("singletons", check_singletons, "each member of a group needs the same question, role and input", 0.1, 0.5),
    Rule("dead groups", of_run("dead_groups", "{percent} of the groups have no signal"),
         "choose questions that are answered sometimes (hira-train curate), or raise rollouts.attempts or "
         "rollouts.refill", 0.5, 0.95),
    Rule("failed rollouts", check_failures,
         "read why in rollouts.jsonl; if a judge is late, raise rollouts.reward_seconds or lower reward.at_once",
         0.1, 0.4),
    Rule("cut replies", of_roles("overlong", "{percent} of the conversations of {role} end in a cut reply"),
         "allow longer replies or a wider rollouts.window; train.mask_overlong=true leaves them out", 0.2, 0.95),
    Rule("drift", of_roles("sampler_drift", "log-probabilities of {role} differ by {value:.3g} from the sampler's"),
         "their weights or their precision differ: check that the sampler loads each new adapter", 0.02, 0.2),
    Rule("entropy", check_entropy, "lower train.lr; against collapse, raise train.clip_high or mask mastered tokens"),
    Rule("reward hacking", check_hacking),
)  # fmt: skip
"""The last two figures are the limits of a warning and of a fault; a rule without them returns FINE, ODD or BROKEN."""


def examine(seen: RunFiles) -> list[RuleFinding]:
    return [rule.examine(seen) for rule in RULES]
