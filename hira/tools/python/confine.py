"""Give up, for good, all that the code must not have. Runs in the child, before any of the code.

Imports nothing of hira. It holds for this thread and what it starts later, so it comes before anything that starts
threads (numpy does).
"""

import ctypes
import os
import signal
import struct
import sys
from pathlib import Path
from typing import Any

from . import landlock, seccomp

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 24, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64

_SYSTEM_FILES = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share", "/usr/local/lib", "/usr/local/share", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/timezone", "/etc/fonts", "/etc/mime.types"),
    *("/dev/zero", "/dev/urandom", "/dev/random"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu"),
)


def confine(setup: dict[str, Any], parent: int) -> list[str]:
    """Put on every layer the mode asks for; returns their names. Raises OSError if one of them does not hold.

    `setup`: `mode`; `folder`, where code may write; `read` and `list`, what it may read or only list; `limits`.
    """
    if sys.platform == "linux" and parent:
        _end_with(parent)
    if setup["mode"] == "off":
        return ["process"]
    _limit(setup["limits"])
    layers = ["process", "limits"]
    if sys.platform != "linux":
        return layers
    _drop_privileges()
    layers.append("privileges")
    if setup["mode"] == "process":
        return layers
    if setup["mode"] == "container":
        return [*layers, "container"]
    version = landlock.restrict(_rules(setup))
    seccomp.install(also=() if version >= 3 else ("truncate",))
    return [*layers, "landlock", "seccomp"]


def _rules(setup: dict[str, Any]) -> list[tuple[str, int]]:
    prefixes = {sys.prefix, sys.base_prefix}
    interpreter = [str(Path(prefix, part)) for prefix in prefixes for part in ("lib", "lib64", "share")]
    importable = [path for path in sys.path if path.startswith(tuple(f"{prefix}/" for prefix in prefixes))]
    readable = [*_SYSTEM_FILES, *interpreter, *importable, *setup["read"]]
    return [
        *((path, landlock.READ) for path in readable),
        *((path, landlock.LIST) for path in setup["list"]),
        (os.devnull, landlock.WRITE),
        (setup["folder"], landlock.WRITE),
    ]


def _limit(limits: dict[str, int]) -> None:
    import resource

    wanted = {
        # One byte, not none: a kernel that pipes core files to a program asks only whether the limit is one.
        "RLIMIT_CORE": 1,
        "RLIMIT_FSIZE": limits["file"],
        "RLIMIT_NOFILE": limits["open_files"],
        "RLIMIT_DATA": limits["memory"],
        "RLIMIT_AS": 4 * limits["memory"],
        "RLIMIT_STACK": 8 << 20,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_RTPRIO": 0,
        "RLIMIT_SIGPENDING": 256,
    }
    for name, most in wanted.items():
        if (kind := getattr(resource, name, None)) is None:
            continue
        hard = resource.getrlimit(kind)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(kind, (value, value))
        except (OSError, ValueError):
            if sys.platform == "linux":  # macOS knows the names but refuses some of the values
                raise


def _end_with(parent: int) -> None:
    """Die when the parent dies, however it dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != parent:
        os._exit(1)


def _drop_privileges() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for capability in range(_CAPABILITIES):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # only root can, and only root has to
    if number := _CAPSET.get(os.uname().machine):
        header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
        _checked(libc.syscall(ctypes.c_long(number), ctypes.c_char_p(header), ctypes.c_char_p(bytes(24))))


def _checked(result: int) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
