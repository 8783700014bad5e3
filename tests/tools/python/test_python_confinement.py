"""Each program tries to get out. It prints REACHED where it got somewhere; afterwards the session still answers."""

import fcntl
import os
from pathlib import Path

import pytest
from python_host import SECRET, Host

from hira.tools.python import PythonSandbox

LIBC = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
"""

READS = {
    "the environment of the parent": "import os\nprint('REACHED', open(f'/proc/{os.getppid()}/environ', 'rb').read())",
    "the environment through libc": LIBC
    + "libc.getenv.restype = ctypes.c_char_p\nprint(libc.getenv(b'OPENAI_API_KEY'))",
    "all of its own environment": "import os\nprint(dict(os.environ))",
    "the command line of the parent": "print('REACHED', open(f'/proc/{HOST}/cmdline').read())",
    "the memory of the parent": "f = open(f'/proc/{HOST}/mem', 'rb'); print('REACHED')",
    "the working folder of the parent": "import os\nprint(os.listdir(f'/proc/{HOST}/cwd/outside'), 'REACHED')",
    "a descriptor that the parent leaks": "import os\nprint(os.pread(LEAK, 100, 0))",
    "a descriptor through /proc": "print(open(f'/proc/{HOST}/fd/{LEAK}').read())",
    "a key in the home folder": "print(open(HOME + '/.ssh/id_rsa').read())",
    "the names in the home folder": "import os\nprint('REACHED', os.listdir(HOME))",
    "a key by a path that climbs": "print(open('../../home/.ssh/id_rsa').read())",
    "a key through a symbolic link": "import os\nos.symlink(HOME + '/.ssh', 'link')\nprint(open('link/id_rsa').read())",
    "a key through a hard link": "import os\nos.link(HOME + '/.ssh/id_rsa', 'copy')\nprint(open('copy').read())",
    "a key through the root of a process": "print(open('/proc/self/root' + HOME + '/.ssh/id_rsa').read())",
    "a key moved into the folder": "import os\nos.rename(HOME + '/.ssh/id_rsa', 'taken')\nprint(open('taken').read())",
    "the users of the machine": "print('REACHED', open('/etc/passwd').read())",
    "the passwords of the machine": "print('REACHED', open('/etc/shadow').read())",
    "a key by sqlite": "import sqlite3\nc = sqlite3.connect(':memory:')\ntry: c.execute('attach ? as x', (OUT + '/.env',))\nexcept sqlite3.DatabaseError as e: print('REACHED' if 'not a database' in str(e) else 'no')",
    "a key by openat2": LIBC
    + "print('REACHED' if call(437, -100, (OUT + '/.env').encode(), bytes(24), 24) >= 0 else 'no')",
    "a key by io_uring": LIBC + "print('REACHED' if call(425, 8, bytes(120)) >= 0 else 'no')",
    "the frames and the heap of the caller": "import gc\nprint([o for o in gc.get_objects() if isinstance(o, dict) and any(v == 'sk-' + 'canary-0f3d' for v in o.values() if isinstance(v, str))])",
    "a key through a handle that only names it": "import os\nf = os.open(OUT + '/.env', os.O_PATH)\nprint(open(f'/proc/self/fd/{f}').read())",
    "a key from a folder that is only named": "import os\nd = os.open(OUT, os.O_PATH)\nprint(os.read(os.open('.env', os.O_RDONLY, dir_fd=d), 100))",
    "a key from the folder it went into": "import os\nos.chdir(HOME)\nprint(open('.ssh/id_rsa').read())",
    "a key by linking a handle": LIBC
    + "f = os.open(OUT + '/.env', os.O_PATH)\nlibc.linkat(f, b'', -100, b'copy', 0x1000)\nprint(open('copy').read())",
    "what leads out of another process": "import os\nprint('REACHED', os.readlink(f'/proc/{HOST}/cwd'))",
    "every open descriptor": "import os\nfor f in range(1024):\n    try:\n        os.lseek(f, 0, 0); print(os.read(f, 100))\n    except OSError: pass",
    "the names of other processes": "import os\nprint('REACHED', os.listdir('/proc'))",
}

WRITES = {
    "a file beside": "open(OUT + '/new', 'w').write('x')",
    "an existing file": "open(OUT + '/keep.txt', 'a').write('x')",
    "a file by truncation": "import os\nos.truncate(OUT + '/keep.txt', 0)",
    "a file by opening it to read and truncate": "import os\nos.open(OUT + '/keep.txt', os.O_RDONLY | os.O_TRUNC)",
    "a file by opening it for nothing and truncate": "import os\nos.open(OUT + '/keep.txt', 3 | os.O_TRUNC)",
    "the mode of a file": "import os\nos.chmod(OUT + '/keep.txt', 0o777)",
    "the times of a file": "import os\nos.utime(OUT + '/keep.txt', (1, 1))",
    "the attributes of a file": "import os\nos.setxattr(OUT + '/keep.txt', 'user.x', b'1')",
    "the owner of a file": "import os\nos.chown(OUT + '/keep.txt', 99, 99)",
    "a folder beside": "import os\nos.mkdir(OUT + '/new')",
    "a file by removal": "import os\nos.remove(OUT + '/keep.txt')",
    "a file by moving one out": "import os\nopen('a', 'w').write('x')\nos.rename('a', OUT + '/new')",
    "a file by linking one out": "import os\nopen('b', 'w').write('x')\nos.link('b', OUT + '/new')",
    "a temporary folder": "open('/tmp/hira-escaped', 'w').write('x')\nprint('REACHED')",
    "shared memory": "open('/dev/shm/hira-escaped', 'w').write('x')\nprint('REACHED')",
    "the packages of the interpreter": "import os, sysconfig\nopen(os.path.join(sysconfig.get_path('purelib'), 'hira_escaped.pth'), 'w').write('x')\nprint('REACHED')",
    "the program that runs it": "import sys\nopen(sys.modules['hira_sandbox.worker'].__file__, 'a').write('#')\nprint('REACHED')",
    "the place of its own folder": "import os\nd = os.getcwd()\nos.rename(d, d + '-gone')\nprint('REACHED')",
    "a file without a name that is given one": LIBC
    + "f = os.open('.', os.O_TMPFILE | os.O_RDWR)\nlibc.linkat(f, b'', -100, (OUT + '/new').encode(), 0x1000)",
    "a file by exchange": LIBC
    + "open('a', 'w').write('x')\nlibc.renameat2(-100, b'a', -100, (OUT + '/keep.txt').encode(), 2)",
    "a device that a move leaves behind": LIBC
    + "open('a', 'w').write('x')\nprint('REACHED' if libc.renameat2(-100, b'a', -100, b'b', 4) == 0 else 'no')",
    "a lock that others wait for": "import fcntl, os\nf, g = open(os.__file__), open(os.__file__)\nfcntl.flock(f, fcntl.LOCK_EX)\ntry: fcntl.flock(g, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept BlockingIOError: print('REACHED')",
    "a device": "import os, stat\nos.mknod('disk', 0o666 | stat.S_IFBLK, os.makedev(254, 0))\nprint('REACHED')",
    "a named pipe": "import os\nos.mkfifo('pipe')\nprint('REACHED')",
    "a program that gives its rights away": "import os\nos.close(os.open('s', os.O_CREAT | os.O_WRONLY, 0o4755))\nprint('REACHED')",
    "space beyond the largest file": LIBC
    + "f = os.open('f', os.O_CREAT | os.O_RDWR)\nprint('REACHED' if call(285, f, 1, 0, 1 << 27) == 0 else 'no')",
}

CONNECTIONS = {
    "TCP": "import socket\nsocket.create_connection(('127.0.0.1', TCP), 2)",
    "TCP over version 6": "import socket\nsocket.create_connection(('::ffff:127.0.0.1', TCP), 2)",
    "UDP": "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))",
    "a named socket": "import socket\nsocket.socket(socket.AF_UNIX).connect(NAMED)",
    "an abstract socket": "import socket\nsocket.socket(socket.AF_UNIX).connect(ABSTRACT)",
    "a mailbox from one end of a pair": "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendto(b'x', MAIL)",
    "a mailbox by a message": "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendmsg([b'x'], [], 0, MAIL)",
    "a mailbox by connecting a pair anew": "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.connect(MAIL)\na.send(b'x')",
    "a port of its own": "import socket\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\nprint('REACHED')",
    "raw packets": "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)\nprint('REACHED')",
    "the kernel's own sockets": "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\nprint('REACHED')",
    "the metadata of a cloud": "import urllib.request\nurllib.request.urlopen('http://169.254.169.254/', timeout=2)\nprint('REACHED')",
    "another program": "import subprocess\nsubprocess.run(['true'])\nprint('REACHED')",
    "a shell": "import os\nprint('REACHED' if os.system('true') == 0 else 'no')",
    "a fork": "import os\nif os.fork() == 0: os._exit(0)\nprint('REACHED')",
    "a fork by the raw call": LIBC + "print('REACHED' if call(56, 17, 0, 0, 0, 0) > 0 else 'no')",
    "a new program in its place": "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(\"REACHED\")'])",
}

ASKING = """
import contextlib, os
def list_processes(numbers):
    asked = (os.getpgid, os.getsid, os.sched_getscheduler, os.sched_getparam, os.sched_getaffinity,
             lambda number: os.getpriority(os.PRIO_PROCESS, number), lambda number: os.kill(number, 0))
    for number in (HOST, *numbers):
        for ask in asked:
            with contextlib.suppress(OSError):
                ask(number)
                yield number
"""
POWERS = {
    "a signal to the host": "import os, signal\nos.kill(HOST, signal.SIGUSR1)\nprint('REACHED')",
    "a signal to everyone": "import os, signal\nos.kill(-1, signal.SIGUSR1)\nprint('REACHED')",
    "a signal to a group": "import os, signal\nos.killpg(os.getpgid(HOST), signal.SIGUSR1)\nprint('REACHED')",
    "a signal by descriptor": LIBC + "p = call(434, HOST, 0)\nprint('REACHED' if p >= 0 else 'no')",
    "a signal with a value": LIBC + "print('REACHED' if call(129, HOST, 10, bytes(128)) == 0 else 'no')",
    "a signal by ownership of a socket": "import fcntl, socket\na, b = socket.socketpair()\nfcntl.fcntl(a, fcntl.F_SETOWN, HOST)\nprint('REACHED')",
    "tracing the host": LIBC + "print('REACHED' if call(101, 16, HOST, 0, 0) == 0 else 'no')",
    "reading the host's memory": LIBC
    + "print('REACHED' if call(310, HOST, bytes(16), 1, bytes(16), 1, 0) > 0 else 'no')",
    "living on without the host": LIBC + "print('REACHED' if libc.prctl(1, 0, 0, 0, 0) == 0 else 'no')",
    "higher limits": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))\nprint('REACHED')",
    "lower limits, which last": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nprint('REACHED')",
    "waking itself when it is stopped": "import os, signal\nos.kill(os.getpid(), signal.SIGCONT)\nprint('REACHED')",
    "waking one thread of itself": LIBC
    + "print('REACHED' if libc.tgkill(os.getpid(), os.getpid(), 18) == 0 else 'no')",
    "a timer that wakes it": LIBC
    + "e = (ctypes.c_long * 8)(0, 18)\nt = ctypes.c_void_p()\nprint('REACHED' if libc.timer_create(1, e, ctypes.byref(t)) == 0 else 'no')",
    "open files for one thread alone": LIBC + "print('REACHED' if call(436, 250, 250, 2) == 0 else 'no')",
    "the limits of the host": "import resource\nresource.prlimit(HOST, resource.RLIMIT_NOFILE, (8, 8))\nprint('REACHED')",
    "the processors of the host": "import os\nos.sched_setaffinity(HOST, {0})\nprint('REACHED')",
    "the scheduler of the host": "import os\nos.sched_setscheduler(HOST, os.SCHED_IDLE, os.sched_param(0))\nprint('REACHED')",
    "the processors that the host may use": "import os\nprint(os.sched_getaffinity(HOST), 'REACHED')",
    "the numbers of processes": ASKING + "print(list(list_processes(range(1, 30))) and 'REACHED')",
    "a clock of the host": "import time\nprint(time.clock_gettime((~HOST << 3) | 2), 'REACHED')",
    "attributes of the documents' folder": "import os\nos.setxattr(OUT, 'user.x', b'1')\nprint('REACHED')",
    "the priority of the host": "import os\nos.setpriority(os.PRIO_PROCESS, HOST, 19)\nprint('REACHED')",
    "the priority of the user": "import os\nos.setpriority(os.PRIO_USER, os.getuid(), 19)\nprint('REACHED')",
    "being someone else": "import os\nos.setresuid(0, 0, 0)\nprint('REACHED')",
    "namespaces of its own": LIBC + "print('REACHED' if call(272, 0x10000000) == 0 else 'no')",
    "a mount": LIBC + "print('REACHED' if libc.mount(b'none', b'/mnt', b'tmpfs', 0, None) == 0 else 'no')",
    "the log of the kernel": LIBC
    + "print('REACHED' if libc.klogctl(3, ctypes.create_string_buffer(4096), 4096) > 0 else 'no')",
    "keys of the kernel": LIBC + "print('REACHED' if call(250, 0, -3, 0) >= 0 else 'no')",
    "programs in the kernel": LIBC + "print('REACHED' if call(321, 0, bytes(120), 120) >= 0 else 'no')",
    "memory outside every limit": "import os\nos.memfd_create('x')\nprint('REACHED')",
    "large pipes": "import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(w, 1031, 1 << 20)\nprint('REACHED')",
    "shared memory of System V": LIBC + "print('REACHED' if call(29, 0, 1 << 20, 0o1600) >= 0 else 'no')",
    "the queues of the system": LIBC
    + "p = ctypes.c_long(0)\nprint('REACHED' if libc.syscall(ctypes.c_long(206), 60000, ctypes.byref(p)) == 0 else 'no')",
    "a call that nobody knows yet": LIBC + "print('REACHED' if call(480) >= 0 or ctypes.get_errno() != 38 else 'no')",
    "typing for the terminal": "import fcntl\nfcntl.ioctl(0, 0x5412, b'x')\nprint('REACHED')",
}


ATTEMPTS = {
    f"{verb} {what}": code
    for verb, table in (("read", READS), ("change", WRITES), ("reach", CONNECTIONS), ("have", POWERS))
    for what, code in table.items()
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("code", ATTEMPTS.values(), ids=ATTEMPTS)
async def test_code_cannot(code: str, captive: PythonSandbox, host: Host) -> None:
    outcome = await captive.run(host.prelude + code, seconds=10)
    seen = outcome.output + outcome.value + outcome.error.rpartition("\n")[2]
    assert SECRET not in seen
    assert "REACHED" not in seen
    assert (await captive.run("40 + 2", seconds=10)).value == "42"
    assert host.untouched()
    assert not host.visited()
    assert not list((host.home.parent / "work").glob("here?*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can show the program another /proc")
async def test_a_program_of_root_sees_no_process_but_itself(sandbox: PythonSandbox, host: Host) -> None:
    look = "import os\n[number in map(str, (os.getpid(), HOST, 1)) for number in filter(lambda n: os.path.exists(f'/proc/{n}'), map(str, range(1, 33000)))]"
    assert (await sandbox.run(host.prelude + look)).value == "[True]"


async def test_a_program_learns_about_itself_and_its_threads_what_it_may(sandbox: PythonSandbox) -> None:
    own = "import os, time\nfrom concurrent.futures import ThreadPoolExecutor\n"
    own += "asked = (lambda: len(os.sched_getaffinity(0)), os.getpgrp, lambda: os.getpgid(0), time.thread_time, time.process_time)\n"
    own += "[bool(ThreadPoolExecutor().submit(ask).result() >= ask() >= 0) or ask for ask in asked[:3]], [ask() >= 0 for ask in asked]"
    assert (await sandbox.run(own)).value == "([True, True, True], [True, True, True, True, True])"


async def test_foreign_and_x32_calls_end_the_interpreter(sandbox: PythonSandbox, host: Host) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("only x86-64 has them")
    outcome = await sandbox.run(LIBC + "call(0x40000000 + 41, 2, 1, 0)")
    assert (outcome.status, outcome.restarted) == ("died", True)
    # mov eax, 20 (getpid of i386); int 0x80; ret
    shell = "import mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(bytes.fromhex('b814000000cd80c3'))\n"
    shell += "print('REACHED', ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))())"
    outcome = await sandbox.run(LIBC + shell)
    assert outcome.status == "died"
    assert (await sandbox.run("1 + 1")).value == "2"


async def test_a_call_that_the_kernel_will_not_come_back_from_is_ended(sandbox: PythonSandbox) -> None:
    stopped = await sandbox.run("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", seconds=0.3)
    assert (stopped.status, stopped.restarted) == ("timeout", True)


async def test_the_interpreter_has_no_capability_and_no_way_to_new_ones(sandbox: PythonSandbox) -> None:
    await sandbox.run("1")
    assert sandbox.layers == ("process", "limits", "privileges", "landlock", "seccomp")
    assert sandbox._interpreter is not None
    status = Path(f"/proc/{sandbox._interpreter.process.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(fields[name], 16) == 0
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


async def test_what_is_given_to_read_can_be_read_and_not_written(tmp_path: Path, able: None) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "table.csv").write_text("a,b\n1,2\n")
    (docs / ".env").write_text(SECRET)
    (tmp_path / "single.txt").write_text("alone")
    (tmp_path / "other.txt").write_text(SECRET)
    (docs / "sly").symlink_to(tmp_path / "other.txt")
    async with PythonSandbox(tmp_path / "work", readable=(docs, tmp_path / "single.txt")) as sandbox:
        seen = await sandbox.run(
            f"import os\nprint(os.listdir({str(docs)!r}), open({str(docs / 'table.csv')!r}).read())"
        )
        assert "1,2" in seen.output
        assert (await sandbox.run(f"open({str(tmp_path / 'single.txt')!r}).read()")).value == "'alone'"
        for path in (docs / ".env", docs / "sly", tmp_path / "other.txt"):
            assert "PermissionError" in (await sandbox.run(f"open({str(path)!r}).read()")).error
        assert "PermissionError" in (await sandbox.run(f"open({str(docs / 'table.csv')!r}, 'w')")).error
    assert (docs / "table.csv").read_text() == "a,b\n1,2\n"


async def test_a_lock_on_a_file_that_it_may_read_keeps_no_writer_waiting(tmp_path: Path, able: None) -> None:
    given = tmp_path / "given.txt"
    given.write_text("of the user")
    async with PythonSandbox(tmp_path / "work", readable=(given,)) as sandbox:
        for lock in (fcntl.lockf, fcntl.flock):
            code = f"import fcntl\nfile = open({str(given)!r})\nfcntl.{lock.__name__}(file, fcntl.LOCK_SH)\nfile.read()"
            outcome = await sandbox.run(code)
            assert (outcome.status, outcome.value) == ("ok", "'of the user'")
            with given.open("r+") as writer:
                lock(writer, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def test_a_database_in_the_folder_works_without_locks(sandbox: PythonSandbox) -> None:
    code = """
import sqlite3
one, other = sqlite3.connect("t.db"), sqlite3.connect("t.db")
with one: one.executescript("pragma journal_mode=wal; create table t (a); insert into t values (42)")
other.execute("select a from t").fetchone()
"""
    assert (await sandbox.run(code)).value == "(42,)"
