"""The limits of this machine's kernel for programs. Imports nothing of hira; used on both sides."""

import ctypes
import platform
import sys

CREATE = 444
"""The system call that creates a Landlock ruleset, on every architecture."""
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The machines whose system calls are tabled: the column of the table, and the name that the kernel checks."""
_VERSION = 1
_PR_GET_SECCOMP = 21


def landlock_version() -> int:
    """Return the kernel's Landlock version, 0 if it has none."""
    if sys.platform != "linux":
        return 0
    return max(call_kernel(CREATE, None, 0, _VERSION), 0)


def missing_seccomp() -> str:
    """Explain why the filter of system calls cannot be used on this Linux; empty if it can."""
    if platform.machine() not in ARCHITECTURES or sys.byteorder != "little" or sys.maxsize < 1 << 32:
        return f"no table of system calls for {platform.machine()}"
    libc = ctypes.CDLL(None, use_errno=True)
    return "" if libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 else "this kernel has no seccomp filters"


def call_kernel(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call that the C library has no function for."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    words = [ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value) for value in arguments]
    return int(libc.syscall(ctypes.c_long(number), *words))
