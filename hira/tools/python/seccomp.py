"""The system-call filter: no network, no other programs, nothing aimed at other processes (Linux, x86-64 and ARM64).

Landlock closes files; this closes what Landlock does not see. Calls that need a decision by argument have a rule in
`_rules`; the rest are refused, pretended or missing as the tables below say, and all others pass. Imports nothing of
hira; used on both sides. See seccomp(2) and the kernel's Documentation/userspace-api/seccomp_filter.rst.
"""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable

from .syscalls import MISSING, NUMBERS, PRETENDED, REFUSED

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_NEWEST = 470  # the first number that was not looked at when the tables were made
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _JUMP, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x05, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_SUCCESS, _EPERM, _ENOTTY, _ENOSYS, _EOPNOTSUPP = 0, 1, 25, 38, 95
_PR_GET_SECCOMP, _PR_SET_SECCOMP, _FILTER = 21, 22, 2

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand
_Block = list[_Instruction]

_AF_UNIX = 1
_CLONE_THREAD, _CLONE_FILES, _CLONE_NEW = 0x10000, 0x400, 0x7E020000
_CLOSE_UNSHARED = 2
_WHITEOUT = 4
_CONTINUE = 18  # SIGCONT
_SET_ID_BITS = 0o6000
_TRUNCATE, _ACCESS = 0o1000, 0o3
_PROCESS = 0  # PRIO_PROCESS
_IO_PROCESS = 1  # IOPRIO_WHO_PROCESS
# close-on-exec on and off, non-blocking, bytes to read, is it a terminal, its size
_IOCTLS = (0x5451, 0x5450, 0x5421, 0x541B, 0x5401, 0x5413)
# owner and signal of a descriptor, leases, directory watches, size of a pipe, seals
_FCNTLS = (8, 10, 15, 1024, 1026, 1031, 1033)
# record locks, of the process and of an open file: one on a file that may only be read would keep its writers waiting
_LOCKS = (6, 7, 37, 38)
# read-only questions, the name of a thread, the name of a mapping; above all not the parent-death signal
_PRCTLS = (2, 3, 15, 16, 21, 23, 27, 30, 39, 42, 0x53564D41)


def missing() -> str:
    """Why the filter cannot be used here; empty if it can."""
    if sys.platform != "linux":
        return "needs Linux"
    if platform.machine() not in _ARCHITECTURES or sys.byteorder != "little" or sys.maxsize < 1 << 32:
        return f"no table of system calls for {platform.machine()}"
    libc = ctypes.CDLL(None, use_errno=True)
    return "" if libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 else "this kernel has no seccomp filters"


def install(*, also: Iterable[str] = ()) -> None:
    """Put the filter on this process for good; `also` are further calls to refuse. It needs no_new_privs first."""
    code = b"".join(struct.pack("=HBBI", *one) for one in program(platform.machine(), os.getpid(), also))
    instructions = ctypes.create_string_buffer(code, len(code))
    fprog = struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.c_char_p(fprog), 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def program(machine: str, pid: int, also: Iterable[str] = ()) -> _Block:
    """The filter as BPF instructions, for a process with that id."""
    column, audit = _ARCHITECTURES[machine]
    block: _Block = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    if machine == "x86_64":
        block += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    block += [(_AT_LEAST, 0, 1, _NEWEST), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    plain = [(PRETENDED, 0), (MISSING, _ENOSYS), ((*REFUSED, *also), _EPERM)]
    decided = {name: [(_RETURN, 0, 0, _ERRNO | code)] for names, code in plain for name in names}
    for name, rule in (decided | _rules(pid)).items():
        if (number := NUMBERS[name][column]) is not None:
            body = [*rule, (_RETURN, 0, 0, _ALLOW)]
            block += [(_EQUAL, 0, len(body), number), *body]
    return [*block, (_RETURN, 0, 0, _ALLOW)]


def _rules(pid: int) -> dict[str, _Block]:
    """Calls that are allowed with some arguments only. A signal, a priority or a limit may meet the process itself."""
    me, own = (pid,), (0, pid)
    queued = [*_only(0, me), *_none_of(1, (_CONTINUE,))]
    aimed = [*_only(0, me), *_none_of(2, (_CONTINUE,))]
    unlisted: _Block = [(_RETURN, 0, 0, _ERRNO | _EOPNOTSUPP)]
    return {
        "socketpair": _only(0, (_AF_UNIX,)),  # asyncio wakes itself up through one
        "sendto": _zero(4),  # no address: on a connected pair only
        # threads with open files of their own would hold what nobody sees
        "clone": [*_need_bits(0, _CLONE_THREAD), *_need_bits(0, _CLONE_FILES), *_refuse_bits(0, _CLONE_NEW)],
        "close_range": _refuse_bits(2, _CLOSE_UNSHARED),
        "renameat2": _refuse_bits(4, _WHITEOUT),  # leaves a device behind
        # between two calls the process is stopped, and nothing in it may undo that
        **dict.fromkeys(("kill", "rt_sigqueueinfo"), queued),
        **dict.fromkeys(("tgkill", "rt_tgsigqueueinfo"), aimed),
        **dict.fromkeys(("sched_setaffinity", "sched_setparam", "sched_setscheduler", "sched_setattr"), _only(0, own)),
        "prlimit64": [*_only(0, own), *_zero(2)],  # lower limits would last for all later calls
        "setpgid": _only(0, own),
        "setpriority": [*_only(0, (_PROCESS,)), *_only(1, own)],
        "ioprio_set": [*_only(0, (_IO_PROCESS,)), *_only(1, own)],
        "prctl": _only(0, _PRCTLS),
        "ioctl": _only(1, _IOCTLS, _ENOTTY),
        # it takes gigabytes of the disk in milliseconds; posix_fallocate then writes the blocks, which is watched
        "fallocate": unlisted,
        "fcntl": [*_none_of(1, _FCNTLS), *_none_of(1, _LOCKS, _SUCCESS)],
        "open": [*_refuse_bits(2, _SET_ID_BITS), *_truncated_only_if_written(1)],
        "openat": [*_refuse_bits(3, _SET_ID_BITS), *_truncated_only_if_written(2)],
        "creat": _refuse_bits(1, _SET_ID_BITS),
        "mkdir": _refuse_bits(1, _SET_ID_BITS),
        "mkdirat": _refuse_bits(2, _SET_ID_BITS),
        # shutil.copy2 asks for attributes and is content when the file system has none
        **dict.fromkeys(("getxattr", "lgetxattr", "fgetxattr", "getxattrat"), unlisted),
        **dict.fromkeys(("listxattr", "llistxattr", "flistxattr", "listxattrat"), unlisted),
    }


def _argument(index: int, *, upper: bool = False) -> _Instruction:
    """Load one half of a system call's argument; the kernel reads most of them as 32 bits."""
    return (_LOAD, 0, 0, 16 + 8 * index + (4 if upper else 0))


def _refused(code: int = _EPERM) -> _Instruction:
    return (_RETURN, 0, 0, _ERRNO | code)


def _only(index: int, values: Iterable[int], code: int = _EPERM) -> _Block:
    listed = list(values)
    tests = [(_EQUAL, len(listed) - at, 0, value) for at, value in enumerate(listed)]
    return [_argument(index), *tests, _refused(code)]


def _none_of(index: int, values: Iterable[int], code: int = _EPERM) -> _Block:
    listed = list(values)
    tests = [(_EQUAL, len(listed) - at, 0, value) for at, value in enumerate(listed)]
    return [_argument(index), *tests, (_JUMP, 0, 0, 1), _refused(code)]


def _zero(index: int) -> _Block:
    return [
        _argument(index),
        (_EQUAL, 1, 0, 0),
        _refused(),
        _argument(index, upper=True),
        (_EQUAL, 1, 0, 0),
        _refused(),
    ]


def _need_bits(index: int, bits: int) -> _Block:
    return [_argument(index), (_ANY_BIT, 1, 0, bits), _refused()]


def _refuse_bits(index: int, bits: int) -> _Block:
    return [_argument(index), (_ANY_BIT, 0, 1, bits), _refused()]


def _truncated_only_if_written(flags: int) -> _Block:
    """Landlock looks at how a file is opened; before its third version it did not look at O_TRUNC beside it."""
    tests = [(_EQUAL, 2, 0, _TRUNCATE), (_EQUAL, 1, 0, _TRUNCATE | _ACCESS), (_JUMP, 0, 0, 1)]
    return [_argument(flags), (_AND, 0, 0, _TRUNCATE | _ACCESS), *tests, _refused()]
