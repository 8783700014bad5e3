"""`hira completion`: scripts for shells, made from the parser, so that they know what this version knows."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import hira
from hira.cli import OK
from hira.cli.parser import Parser, parser
from hira.cli.shell import Shell

PATHS = ("FILE", "PATH", "DIR", "FOLDER", "RUN.toml")
NAMES: Mapping[str, tuple[str, ...]] = {
    "--workflow": (
        "hira", "mars", "marsrl", "matpo", "mams", "direct", "rag", "search-o1", "webthinker", "codeact", "multimodal",
        "plan-and-solve", "react", "react-report",
    ),
}  # fmt: skip
"""What may follow flags that take more than one name, such as some with commas between them. Written out, because a
shell that starts waits for this script, and the workflows take long to import."""


@dataclass(frozen=True, slots=True)
class Word:
    """A flag: how it is spelled, what it is for, what may follow it. `takes` says that a value does."""

    names: tuple[str, ...]
    help: str
    takes: bool = False
    values: tuple[str, ...] = ()
    path: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A command by its words, such as `runs export`, with its flags, its commands and the values of its argument."""

    words: tuple[str, ...]
    help: str
    flags: tuple[Word, ...] = ()
    commands: tuple[str, ...] = ()
    values: tuple[str, ...] = field(default=())


def completion(args: argparse.Namespace, shell: Shell) -> int:
    known = list(commands_of(parser(hira.__version__)))
    shell.say({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](known))
    return OK


def commands_of(own: Parser, words: tuple[str, ...] = (), told: str = "") -> Iterator[Command]:
    """The parser's command and all below it."""
    flags: list[Word] = []
    below: list[tuple[str, Parser, str]] = []
    values: list[str] = []
    for action in own._actions:  # noqa: SLF001 - argparse has no public name for it
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - likewise
            helps = {one.dest: one.help or "" for one in action._choices_actions}  # noqa: SLF001 - likewise
            below += [(name, made, helps.get(name, "")) for name, made in action.choices.items()]
        elif action.option_strings:
            choices = tuple(map(str, action.choices or NAMES.get(action.option_strings[0], ())))
            flags.append(
                Word(
                    tuple(action.option_strings), action.help or "", action.nargs != 0, choices, action.metavar in PATHS
                )
            )
        else:
            values += map(str, action.choices or ())
    yield Command(words, told, tuple(flags), tuple(name for name, _, _ in below), tuple(values))
    for name, made, help_of in below:
        yield from commands_of(made, (*words, name), help_of)


def bash(known: list[Command]) -> str:
    """A function that finds the command among the words typed so far, and then what may come next."""
    cases = "\n".join(
        f'        "{" ".join(one.words)}") words="{" ".join([*one.commands, *one.values, *_names(one)])}" ;;'
        for one in known
    )
    values = "\n".join(
        f'        "{" ".join(one.words)} {name}") '
        f'COMPREPLY=($(compgen -W "{" ".join(flag.values)}" -- "$word")); return ;;'
        for one in known
        for flag in one.flags
        for name in flag.names
        if flag.values
    )
    valued = "\n".join(
        f'        "{" ".join(one.words)} {name}") {"compopt -o default; " if flag.path else ""}COMPREPLY=(); return ;;'
        for one in known
        for flag in one.flags
        for name in flag.names
        if flag.takes and not flag.values
    )
    paths = "|".join(f'"{" ".join(one.words)}"' for one in known if one.words)
    return f"""# hira for bash: source <(hira completion bash)
_hira() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="" words="" at
    for ((at = 1; at < COMP_CWORD; at++)); do
        case "${{command:+$command }}${{COMP_WORDS[at]}}" in
        {paths}) command="${{command:+$command }}${{COMP_WORDS[at]}}" ;;
        esac
    done
    case "$command $before" in
{values}
{valued}
    esac
    case "$command" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o bashdefault -F _hira hira"""


def zsh(known: list[Command]) -> str:
    """zsh speaks bash's way of completing by a module of its own."""
    loading = "autoload -U +X compinit bashcompinit && compinit && bashcompinit"
    return f"# hira for zsh: source <(hira completion zsh)\n{loading}\n{bash(known)}"


def fish(known: list[Command]) -> str:
    lines = ["# hira for fish: hira completion fish > ~/.config/fish/completions/hira.fish", "complete -c hira -f"]
    for one in known:
        top = "__fish_use_subcommand" if not one.words else " ; and ".join(
            f"__fish_seen_subcommand_from {word}" for word in one.words
        )  # fmt: skip
        helps = {other.words[-1]: other.help for other in known if other.words[:-1] == one.words and other.words}
        offered = (*one.commands, *one.values)
        lines += [f"complete -c hira -n '{top}' -a {name} -d {_quoted(helps.get(name, ''))}" for name in offered]
        for flag in one.flags:
            spelled = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
            takes = (
                f" -r -a '{' '.join(flag.values)}'" if flag.values else " -r -F" if flag.path else " -r" * flag.takes
            )
            lines.append(f"complete -c hira -n '{top}' {spelled}{takes} -d {_quoted(flag.help)}")
    return "\n".join(lines)


def _names(one: Command) -> list[str]:
    return [name for flag in one.flags for name in flag.names]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
