"""Give up, for good, everything that the code must not have. Runs in the child, before any of the code.

Imports nothing of hira. It applies to this thread and those that it starts later, so it comes before anything that
starts threads (numpy does).
"""

import ctypes
import errno
import os
import signal
import stat
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import seccomp
from .kernel import CREATE, call_kernel, landlock_version

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 24, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CLONE_NEWNS = 0x20000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18
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
    """Apply every layer that the mode requires and return their names. Raises `OSError` if one fails.

    `setup`: `mode`; `folder`, where code may write; `read` and `list`, the paths that it may read or only list;
    `limits`.
    """
    if sys.platform == "linux" and parent:
        # die when the parent dies, however it dies
        libc = ctypes.CDLL(None, use_errno=True)
        check_result(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        if os.getppid() != parent:
            os._exit(1)
    if setup["mode"] == "off":
        return ["process"]
    _limit(setup["limits"])
    layers = ["process", "limits"]
    if sys.platform != "linux":
        return layers
    if setup["mode"] == "auto":
        # Show a /proc without the other processes: only root can, and Landlock does not cover their names. With
        # `hidepid=ptraceable` the kernel shows the processes that this one may trace, which Landlock ends.
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_CLONE_NEWNS) == 0 and libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) == 0:
            flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
            libc.mount(b"proc", b"/proc", b"proc", flags, b"hidepid=ptraceable")
    _drop_privileges()
    layers.append("privileges")
    if setup["mode"] == "process":
        return layers
    if setup["mode"] == "container":
        return [*layers, "container"]
    version = restrict_files(_rules(setup))
    seccomp.install(also=() if version >= 3 else ("truncate",))
    return [*layers, "landlock", "seccomp"]


def _rules(setup: dict[str, Any]) -> list[tuple[str, int]]:
    prefixes = {sys.prefix, sys.base_prefix}
    interpreter = [str(Path(prefix, part)) for prefix in prefixes for part in ("lib", "lib64", "share")]
    importable = [path for path in sys.path if path.startswith(tuple(f"{prefix}/" for prefix in prefixes))]
    readable = (*_SYSTEM_FILES, *interpreter, *importable, *setup["read"])
    allowed = ((READ, readable), (LIST, setup["list"]), (WRITE, (os.devnull, setup["folder"])))
    return [(path, rights) for rights, paths in allowed for path in paths]


def _limit(limits: dict[str, int]) -> None:
    import resource

    wanted = {
        # One byte, not zero: a kernel that pipes core files to a program only checks whether the limit is one.
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
            if sys.platform == "linux":  # macOS has the names but refuses some of the values
                raise


def _drop_privileges() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    check_result(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for capability in range(_CAPABILITIES):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # only root can, and only root needs to
    if number := _CAPSET.get(os.uname().machine):
        header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
        check_result(libc.syscall(ctypes.c_long(number), ctypes.c_char_p(header), ctypes.c_char_p(bytes(24))))


_ADD, _RESTRICT = 445, 446  # the numbers are the same on every architecture
_PATH_BENEATH = 1
_NO_LOG = 1

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_FILE = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_KNOWN_BITS = {1: 13, 2: 14, 3: 15, 4: 15}  # ABI → how many file rights it knows; from 5 on 16
_TCP = 0b11
_SCOPED = 0b11  # abstract sockets and signals stay inside

READ = _READ_FILE | _READ_DIR
LIST = _READ_DIR
# No symbolic links, no FIFOs, no sockets, no devices: the code can leave only plain files and folders.
WRITE = READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE | _REFER | _TRUNCATE
_OF_FILES = _READ_FILE | _WRITE_FILE | _TRUNCATE


def restrict_files(rules: Iterable[tuple[str, int]]) -> int:
    """Close all files to this process, except the paths with their rights. Returns the ABI. Raises `OSError`.

    A path that does not exist or cannot be opened is left out.
    """
    version = landlock_version()
    files = (1 << _KNOWN_BITS.get(version, 16)) - 1
    attributes = struct.pack("=QQQ", files, _TCP, _SCOPED)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = check_result(call_kernel(CREATE, attributes, len(attributes), 0))
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & files)
        check_result(call_kernel(_RESTRICT, ruleset, _NO_LOG if version >= 7 else 0))
    finally:
        os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}:  # not a fault of the path
            raise
        return
    try:
        if not stat.S_ISDIR(os.fstat(target).st_mode):
            rights &= _OF_FILES
        if rights:
            check_result(call_kernel(_ADD, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, target), 0))
    finally:
        os.close(target)


def check_result(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
