"""Landlock: files are closed except the ones named here (Linux 5.13+). Imports nothing of hira; used on both sides.

It needs no rights and nothing installed, and it holds for the calling thread and all that it starts later.
See landlock(7) and the kernel's Documentation/userspace-api/landlock.rst.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the numbers are the same on every architecture
_VERSION = 1
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
# No symbolic links, no FIFOs, no sockets, no devices: what the code leaves behind is plain files and folders.
WRITE = READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE | _REFER | _TRUNCATE
_OF_FILES = _READ_FILE | _WRITE_FILE | _TRUNCATE


def abi() -> int:
    """The kernel's Landlock version, 0 if it has none."""
    if sys.platform != "linux":
        return 0
    return max(_syscall(_CREATE, None, 0, _VERSION), 0)


def missing() -> str:
    """Why Landlock cannot be used here; empty if it can."""
    if sys.platform != "linux":
        return "needs Linux"
    return "" if abi() else "this kernel has no Landlock (Linux 5.13 or later, with Landlock switched on)"


def restrict(rules: Iterable[tuple[str, int]]) -> int:
    """Close all files to this process, except the paths with their rights. Returns the ABI. Raises OSError.

    A path that does not exist or cannot be opened is left out.
    """
    version = abi()
    files = (1 << _KNOWN_BITS.get(version, 16)) - 1
    attributes = struct.pack("=QQQ", files, _TCP, _SCOPED)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = _checked(_syscall(_CREATE, attributes, len(attributes), 0))
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & files)
        _checked(_syscall(_RESTRICT, ruleset, _NO_LOG if version >= 7 else 0))
    finally:
        os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}:  # says nothing of the path
            raise
        return
    try:
        if not stat.S_ISDIR(os.fstat(target).st_mode):
            rights &= _OF_FILES
        if rights:
            _checked(_syscall(_ADD, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, target), 0))
    finally:
        os.close(target)


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return int(libc.syscall(ctypes.c_long(number), *map(_word, arguments)))


def _word(value: int | bytes | None) -> ctypes.c_long | ctypes.c_char_p:
    return ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value)


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
