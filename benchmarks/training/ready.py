"""Check that this machine has what a benchmark of training needs, and list all that is missing before anything loads.
This module uses only the standard library and `packaging`, and no network."""

import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]


def wanted() -> list[str]:
    """What hira and its training extra require, as pyproject.toml says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["train"]]


def lacking(requirements: Iterable[str]) -> dict[str, str]:
    """The requirements that are not met here, and those of what is installed, each with what is there instead."""
    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    known: set[str] = set()
    waiting = [(Requirement(one), "") for one in requirements]
    while waiting:
        asked, by = waiting.pop()
        if str(asked) in known or (asked.marker and not asked.marker.evaluate({"extra": ""})):
            continue
        known.add(str(asked))
        spelled = f"{asked.name}{asked.specifier}" + (f" (for {by})" if by else "")
        try:
            there = metadata.distribution(asked.name)
        except metadata.PackageNotFoundError:
            found[spelled] = "not installed"
            continue
        if not asked.specifier.contains(there.version, prereleases=True):
            found[spelled] = f"there is {there.version}"
        waiting += [(Requirement(one), asked.name) for one in there.requires or ()]
    return found


def check(*, gib: int) -> None:
    """End the process if a package is missing, or there is no GPU with so much free memory; 0 asks for none."""
    try:
        import packaging  # noqa: F401
    except ImportError:
        sys.exit("not ready: packaging is not installed")
    if missing := lacking(wanted()):
        told = "\n".join(f"  {name}: {there}" for name, there in sorted(missing.items()))
        sys.exit(f"not ready: {len(missing)} packages are missing or of another version\n{told}")
    import torch

    if not gib:
        return
    if not torch.cuda.is_available():
        sys.exit(f"not ready: torch {torch.__version__} sees no GPU; --tiny makes a dry run on a CPU")
    free, _ = torch.cuda.mem_get_info()
    if free < gib * 2**30 or not torch.cuda.is_bf16_supported():
        name = torch.cuda.get_device_name(0)
        sys.exit(f"not ready: {free / 2**30:.0f} GiB are free on {name}; {gib} GiB with bf16 are wanted")


if __name__ == "__main__":
    check(gib=0)
    print("all packages are there")
