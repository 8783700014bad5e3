"""The system-call filter: no network, no other programs, nothing aimed at other processes (Linux, x86-64 and ARM64).

Landlock closes files; this closes what Landlock does not see. Calls that need a decision by argument have a rule in
`_rules`; the rest are refused, pretended or missing as the tables below say, and all others pass. Imports nothing of
hira; used on both sides. See seccomp(2) and the kernel's Documentation/userspace-api/seccomp_filter.rst.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Iterable

from .kernel import ARCHITECTURES

_Numbers = dict[str, tuple[int | None, int | None]]


def _read_numbers(table: str) -> _Numbers:
    """Return the numbers of system calls on x86-64 and on ARM64, None (`-`) where there is no such call."""
    rows = (row.split() for row in table.split(","))
    return {name: (None if x86 == "-" else int(x86), None if arm == "-" else int(arm)) for name, x86, arm in rows}


REFUSED = _read_numbers(
    """
    _sysctl 156 -, accept 43 202, accept4 288 242, acct 163 89, add_key 248 217, adjtimex 159 171,
    afs_syscall 183 -, bind 49 200, bpf 321 280, capset 126 91, chroot 161 51, clock_adjtime 305 266,
    clock_settime 227 112, connect 42 203, create_module 174 -, delete_module 176 106, execve 59 221,
    execveat 322 281, fanotify_init 300 262, fanotify_mark 301 263, file_setattr 469 469, finit_module 313 273,
    fork 57 -, fsconfig 431 431, fsmount 432 432, fsopen 430 430, fspick 433 433, get_kernel_syms 177 -,
    getpmsg 181 -, init_module 175 105, ioperm 173 -, iopl 172 -, kcmp 312 272, kexec_file_load 320 294,
    kexec_load 246 104, keyctl 250 219, landlock_add_rule 445 445, landlock_create_ruleset 444 444,
    landlock_restrict_self 446 446, listen 50 201, listmount 458 458, lookup_dcookie 212 18,
    lsm_get_self_attr 459 459, lsm_list_modules 461 461, lsm_set_self_attr 460 460, migrate_pages 256 238,
    mknod 133 -, mknodat 259 33, modify_ldt 154 -, mount 165 40, mount_setattr 442 442, move_mount 429 429,
    move_pages 279 239, mq_getsetattr 245 185, mq_notify 244 184, mq_open 240 180, mq_timedreceive 243 183,
    mq_timedsend 242 182, mq_unlink 241 181, msgctl 71 187, msgget 68 186, msgrcv 70 188, msgsnd 69 189,
    name_to_handle_at 303 264, nfsservctl 180 42, open_by_handle_at 304 265, open_tree 428 428,
    open_tree_attr 467 467, perf_event_open 298 241, personality 135 92, pidfd_getfd 438 438, pidfd_open 434 434,
    pidfd_send_signal 424 424, pivot_root 155 41, process_madvise 440 440, process_mrelease 448 448,
    process_vm_readv 310 270, process_vm_writev 311 271, ptrace 101 117, putpmsg 182 -, query_module 178 -,
    quotactl 179 60, quotactl_fd 443 443, reboot 169 142, remap_file_pages 216 234, request_key 249 218,
    seccomp 317 277, security 185 -, semctl 66 191, semget 64 190, semop 65 193, semtimedop 220 192,
    sendmmsg 307 269, sendmsg 46 211, setdomainname 171 162, setfsgid 123 152, setfsuid 122 151, setgid 106 144,
    setgroups 116 159, sethostname 170 161, setns 308 268, setregid 114 143, setresgid 119 149, setresuid 117 147,
    setreuid 113 145, setrlimit 160 164, settimeofday 164 170, setuid 105 146, shmat 30 196, shmctl 31 195,
    shmdt 67 197, shmget 29 194, socket 41 198, statmount 457 457, swapoff 168 225, swapon 167 224, symlink 88 -,
    symlinkat 266 36, sysfs 139 -, syslog 103 116, timer_create 222 107, tkill 200 130, tuxcall 184 -,
    umount2 166 39, unshare 272 97, uselib 134 -, ustat 136 -, vfork 58 -, vhangup 153 58, vserver 236 -
    """
)
"""Fail with EPERM: they reach other machines, processes, users, or rarely used parts of the kernel; or can wake a
stopped process, as a timer with a freely chosen signal can."""

MISSING = _read_numbers(
    """
    clone3 435 435, inotify_add_watch 254 27, inotify_init 253 -, inotify_init1 294 26, io_setup 206 0,
    io_uring_enter 426 426, io_uring_register 427 427, io_uring_setup 425 425, memfd_create 319 279,
    memfd_secret 447 447, openat2 437 437, splice 275 76, tee 276 77, userfaultfd 323 282, vmsplice 278 75
    """
)
"""Fail with ENOSYS, as on an older kernel: callers have an alternative, whose arguments can be checked."""

PRETENDED = _read_numbers(
    """
    chmod 90 -, chown 92 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, fchown 93 55, fchownat 260 54,
    flock 73 32, futimesat 261 -, lchown 94 -, sync 162 81, syncfs 306 267, umask 95 166, utime 132 -,
    utimensat 280 88, utimes 235 -
    """
)
"""Succeed and do nothing: Landlock does not see them, and copying a file or writing an archive ends with one. A lock on
a read-only file would block others; a mask would hide new files from us."""

_DECIDED = _read_numbers(
    """
    clock_getres 229 114, clock_gettime 228 113, clock_nanosleep 230 115, clone 56 220, close_range 436 436,
    creat 85 -, fallocate 285 47, fcntl 72 25, fgetxattr 193 10, flistxattr 196 13, fremovexattr 199 16,
    fsetxattr 190 7, get_robust_list 274 100, getpgid 121 155, getpriority 140 141, getsid 124 156, getxattr 191 8,
    getxattrat 464 464, ioctl 16 29, ioprio_get 252 31, ioprio_set 251 30, kill 62 129, lgetxattr 192 9,
    listxattr 194 11, listxattrat 465 465, llistxattr 195 12, lremovexattr 198 15, lsetxattr 189 6, mkdir 83 -,
    mkdirat 258 34, open 2 -, openat 257 56, prctl 157 167, prlimit64 302 261, removexattr 197 14,
    removexattrat 466 466, renameat2 316 276, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240,
    sched_getaffinity 204 123, sched_getattr 315 275, sched_getparam 143 121, sched_getscheduler 145 120,
    sched_rr_get_interval 148 127, sched_setaffinity 203 122, sched_setattr 314 274, sched_setparam 142 118,
    sched_setscheduler 144 119, sendto 44 206, setpgid 109 154, setpriority 141 140, setxattr 188 5,
    setxattrat 463 463, socketpair 53 199, tgkill 234 131, truncate 76 45
    """
)
"""Calls that are decided by argument, in `_rules`, or refused on older kernels."""
NUMBERS = REFUSED | MISSING | PRETENDED | _DECIDED

_NEWEST = 470  # the first number that was not reviewed for the tables
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _JUMP, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x05, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_SUCCESS, _EPERM, _EINVAL, _ENOTTY, _ENOSYS, _EOPNOTSUPP = 0, 1, 22, 25, 38, 95
_PR_SET_SECCOMP, _FILTER = 22, 2

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand
_Block = list[_Instruction]

_AF_UNIX = 1
_CLONE_THREAD, _CLONE_FILES, _CLONE_NEW = 0x10000, 0x400, 0x7E020000
_CLOSE_UNSHARED = 2
_WHITEOUT = 4
_CONTINUE = 18  # SIGCONT
_SET_ID_BITS = 0o6000
_TRUNCATE, _ACCESS = 0o1000, 0o3
_CLOCK_OF_A_PROCESS = 0x80000000  # a negative number names a process or a thread
_PROCESS = 0  # PRIO_PROCESS
_IO_PROCESS = 1  # IOPRIO_WHO_PROCESS
_OF_A_PROCESS = """get_robust_list getpgid getsid sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
sched_setaffinity sched_setattr sched_setparam sched_setscheduler setpgid"""
# close-on-exec on and off, non-blocking, bytes to read, is it a terminal, its size
_IOCTLS = (0x5451, 0x5450, 0x5421, 0x541B, 0x5401, 0x5413)
# owner and signal of a descriptor, leases, directory watches, size of a pipe, seals
_FCNTLS = (8, 10, 15, 1024, 1026, 1031, 1033)
# record locks, of the process and of an open file: one on a read-only file would block its writers
_LOCKS = (6, 7, 37, 38)
# read-only questions, the name of a thread, the name of a mapping; above all not the parent-death signal
_PRCTLS = (2, 3, 15, 16, 21, 23, 27, 30, 39, 42, 0x53564D41)


def install(*, also: Iterable[str] = ()) -> None:
    """Apply the filter to this process for good; `also` are further calls to refuse. It needs no_new_privs first."""
    instructions = program(platform.machine(), os.getpid(), also)
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    loaded = ctypes.create_string_buffer(code, len(code))
    fprog = struct.pack("=H6xQ", len(instructions), ctypes.addressof(loaded))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.c_char_p(fprog), 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def program(machine: str, pid: int, also: Iterable[str] = ()) -> _Block:
    """Return the filter as BPF instructions, for a process with that id."""
    column, audit = ARCHITECTURES[machine]
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
    """Return the calls that are allowed with some arguments only, such as signals and limits for the process itself."""
    me, self_pids = (pid,), (0, pid)
    queued = [*_only(0, me), *_none_of(1, (_CONTINUE,))]
    aimed = [*_only(0, me), *_none_of(2, (_CONTINUE,))]
    unlisted: _Block = [(_RETURN, 0, 0, _ERRNO | _EOPNOTSUPP)]
    return {
        "socketpair": _only(0, (_AF_UNIX,)),  # asyncio wakes itself up through one
        "sendto": _zero(4),  # no address: on a connected pair only
        # threads with separate open files would hold files that nobody sees
        "clone": [*_need_bits(0, _CLONE_THREAD), *_need_bits(0, _CLONE_FILES), *_refuse_bits(0, _CLONE_NEW)],
        "close_range": _refuse_bits(2, _CLOSE_UNSHARED),
        "renameat2": _refuse_bits(4, _WHITEOUT),  # leaves a device in the folder
        # the process is stopped between two calls, and nothing in it may undo that
        **dict.fromkeys(("kill", "rt_sigqueueinfo"), queued),
        **dict.fromkeys(("tgkill", "rt_tgsigqueueinfo"), aimed),
        # of others, these change how they run; asked about every number in turn, they tell which processes there are
        **dict.fromkeys(_OF_A_PROCESS.split(), _only(0, self_pids)),
        **{f"{verb}priority": [*_only(0, (_PROCESS,)), *_only(1, self_pids)] for verb in ("get", "set")},
        **{f"ioprio_{verb}": [*_only(0, (_IO_PROCESS,)), *_only(1, self_pids)] for verb in ("get", "set")},
        # without a list of processors the C library still finds the stack of a thread
        "sched_getaffinity": _only(0, self_pids, _ENOSYS),
        "prlimit64": [*_only(0, self_pids), *_zero(2)],  # lower limits would last for all later calls
        "prctl": _only(0, _PRCTLS),
        "ioctl": _only(1, _IOCTLS, _ENOTTY),
        # it allocates gigabytes of the disk in milliseconds; posix_fallocate then writes the blocks, which is watched
        "fallocate": unlisted,
        "fcntl": [*_none_of(1, _FCNTLS), *_none_of(1, _LOCKS, _SUCCESS)],
        "open": [*_refuse_bits(2, _SET_ID_BITS), *_refuse_truncation_by_readers(1)],
        "openat": [*_refuse_bits(3, _SET_ID_BITS), *_refuse_truncation_by_readers(2)],
        **dict.fromkeys(("creat", "mkdir"), _refuse_bits(1, _SET_ID_BITS)),
        "mkdirat": _refuse_bits(2, _SET_ID_BITS),
        # shutil.copy2 asks for attributes and accepts a file system without any
        **{f"{verb}{name}": unlisted for verb in ("get", "list", "set", "remove") for name in ("xattr", "xattrat")},
        **{f"{kind}{verb}xattr": unlisted for kind in "lf" for verb in ("get", "list", "set", "remove")},
        **dict.fromkeys(
            ("clock_getres", "clock_gettime", "clock_nanosleep"), _refuse_bits(0, _CLOCK_OF_A_PROCESS, _EINVAL)
        ),
    }


def _argument(index: int, *, upper: bool = False) -> _Instruction:
    """Load one half of a system call's argument; the kernel reads most of them as 32 bits."""
    return (_LOAD, 0, 0, 16 + 8 * index + (4 if upper else 0))


def _refuse(code: int = _EPERM) -> _Instruction:
    return (_RETURN, 0, 0, _ERRNO | code)


def _only(index: int, values: Iterable[int], code: int = _EPERM) -> _Block:
    listed = list(values)
    tests = [(_EQUAL, len(listed) - index, 0, value) for index, value in enumerate(listed)]
    return [_argument(index), *tests, _refuse(code)]


def _none_of(index: int, values: Iterable[int], code: int = _EPERM) -> _Block:
    *tests, refusal = _only(index, values, code)
    return [*tests, (_JUMP, 0, 0, 1), refusal]


def _zero(index: int) -> _Block:
    return [_argument(index), (_EQUAL, 1, 0, 0), _refuse(), _argument(index, upper=True), (_EQUAL, 1, 0, 0), _refuse()]


def _need_bits(index: int, bits: int) -> _Block:
    return [_argument(index), (_ANY_BIT, 1, 0, bits), _refuse()]


def _refuse_bits(index: int, bits: int, code: int = _EPERM) -> _Block:
    return [_argument(index), (_ANY_BIT, 0, 1, bits), _refuse(code)]


def _refuse_truncation_by_readers(flags: int) -> _Block:
    """Refuse O_TRUNC when a file is opened for reading only: Landlock checks it only from its third version on."""
    tests = [(_EQUAL, 2, 0, _TRUNCATE), (_EQUAL, 1, 0, _TRUNCATE | _ACCESS), (_JUMP, 0, 0, 1)]
    return [_argument(flags), (_AND, 0, 0, _TRUNCATE | _ACCESS), *tests, _refuse()]
