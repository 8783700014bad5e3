"""System calls by name: their numbers on x86-64 and ARM64, and what the filter does with them. Data only."""


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


REFUSED = _names(
    """
    _sysctl accept accept4 acct add_key adjtimex afs_syscall bind bpf capset chroot clock_adjtime clock_settime
    connect create_module delete_module execve execveat fanotify_init fanotify_mark file_setattr finit_module fork
    fsconfig fsmount fsopen fspick get_kernel_syms getpmsg init_module ioperm iopl kcmp kexec_file_load kexec_load
    keyctl landlock_add_rule landlock_create_ruleset landlock_restrict_self listen listmount lookup_dcookie
    lsm_get_self_attr lsm_list_modules lsm_set_self_attr migrate_pages mknod mknodat modify_ldt mount
    mount_setattr move_mount move_pages mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink
    msgctl msgget msgrcv msgsnd name_to_handle_at nfsservctl open_by_handle_at open_tree open_tree_attr
    perf_event_open personality pidfd_getfd pidfd_open pidfd_send_signal pivot_root process_madvise
    process_mrelease process_vm_readv process_vm_writev ptrace putpmsg query_module quotactl quotactl_fd reboot
    remap_file_pages request_key seccomp security semctl semget semop semtimedop sendmmsg sendmsg setdomainname
    setfsgid setfsuid setgid setgroups sethostname setns setregid setresgid setresuid setreuid setrlimit
    settimeofday setuid shmat shmctl shmdt shmget socket statmount swapoff swapon symlink symlinkat sysfs syslog
    timer_create tkill tuxcall umount2 unshare uselib ustat vfork vhangup vserver
    """
)
"""Fail with EPERM: reach other machines, processes, users, or the kernel's rarely trodden parts; or wake a process that
was stopped, which a timer with a signal of its own choice could."""

MISSING = _names(
    """
    clone3 io_setup inotify_add_watch inotify_init inotify_init1 io_uring_enter io_uring_register io_uring_setup
    memfd_create memfd_secret openat2 splice tee userfaultfd vmsplice
    """
)
"""Fail with ENOSYS, as on an older kernel: callers have another way, whose arguments can be judged."""

PRETENDED = _names(
    """
    chmod chown fchmod fchmodat fchmodat2 fchown fchownat flock fremovexattr fsetxattr futimesat lchown lremovexattr
    lsetxattr removexattr removexattrat setxattr setxattrat sync syncfs umask utime utimensat utimes
    """
)
"""Succeed and do nothing: Landlock does not see them, and copying a file or writing an archive ends with one. A lock on
a file that may only be read would keep others waiting; a mask would hide from us what is written."""

# fmt: off
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "_sysctl": (156, None), "accept": (43, 202), "accept4": (288, 242), "acct": (163, 89), "add_key": (248, 217),
    "adjtimex": (159, 171), "afs_syscall": (183, None), "bind": (49, 200), "bpf": (321, 280), "capset": (126, 91),
    "chmod": (90, None), "chown": (92, None), "chroot": (161, 51), "clock_adjtime": (305, 266),
    "clock_settime": (227, 112), "clone": (56, 220), "clone3": (435, 435), "close_range": (436, 436),
    "connect": (42, 203), "creat": (85, None),
    "create_module": (174, None), "delete_module": (176, 106), "execve": (59, 221), "execveat": (322, 281),
    "fallocate": (285, 47), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "fchmod": (91, 52), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "fchown": (93, 55), "fchownat": (260, 54), "fcntl": (72, 25), "fgetxattr": (193, 10),
    "file_setattr": (469, 469), "finit_module": (313, 273), "flistxattr": (196, 13), "flock": (73, 32),
    "fork": (57, None),
    "fremovexattr": (199, 16), "fsconfig": (431, 431), "fsetxattr": (190, 7), "fsmount": (432, 432),
    "fsopen": (430, 430), "fspick": (433, 433), "futimesat": (261, None), "get_kernel_syms": (177, None),
    "getpmsg": (181, None), "getxattr": (191, 8), "getxattrat": (464, 464), "init_module": (175, 105),
    "inotify_add_watch": (254, 27), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "io_setup": (206, 0), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425), "ioctl": (16, 29),
    "ioperm": (173, None), "iopl": (172, None), "ioprio_set": (251, 30), "kcmp": (312, 272),
    "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219), "kill": (62, 129),
    "landlock_add_rule": (445, 445), "landlock_create_ruleset": (444, 444), "landlock_restrict_self": (446, 446),
    "lchown": (94, None), "lgetxattr": (192, 9), "listen": (50, 201), "listmount": (458, 458), "listxattr": (194, 11),
    "listxattrat": (465, 465), "llistxattr": (195, 12), "lookup_dcookie": (212, 18), "lremovexattr": (198, 15),
    "lsetxattr": (189, 6), "lsm_get_self_attr": (459, 459), "lsm_list_modules": (461, 461),
    "lsm_set_self_attr": (460, 460), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "migrate_pages": (256, 238), "mkdir": (83, None), "mkdirat": (258, 34), "mknod": (133, None),
    "mknodat": (259, 33), "modify_ldt": (154, None), "mount": (165, 40), "mount_setattr": (442, 442),
    "move_mount": (429, 429), "move_pages": (279, 239), "mq_getsetattr": (245, 185), "mq_notify": (244, 184),
    "mq_open": (240, 180), "mq_timedreceive": (243, 183), "mq_timedsend": (242, 182), "mq_unlink": (241, 181),
    "msgctl": (71, 187), "msgget": (68, 186), "msgrcv": (70, 188), "msgsnd": (69, 189),
    "name_to_handle_at": (303, 264), "nfsservctl": (180, 42), "open": (2, None), "open_by_handle_at": (304, 265),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "openat": (257, 56), "openat2": (437, 437),
    "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pivot_root": (155, 41), "prctl": (157, 167), "prlimit64": (302, 261),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "ptrace": (101, 117), "putpmsg": (182, None), "query_module": (178, None),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "reboot": (169, 142), "remap_file_pages": (216, 234),
    "removexattr": (197, 14), "removexattrat": (466, 466), "renameat2": (316, 276), "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "sched_setaffinity": (203, 122), "sched_setattr": (314, 274),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "seccomp": (317, 277), "security": (185, None),
    "semctl": (66, 191), "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "sendmmsg": (307, 269),
    "sendmsg": (46, 211), "sendto": (44, 206), "setdomainname": (171, 162), "setfsgid": (123, 152),
    "setfsuid": (122, 151), "setgid": (106, 144), "setgroups": (116, 159), "sethostname": (170, 161),
    "setns": (308, 268), "setpgid": (109, 154), "setpriority": (141, 140), "setregid": (114, 143),
    "setresgid": (119, 149), "setresuid": (117, 147), "setreuid": (113, 145), "setrlimit": (160, 164),
    "settimeofday": (164, 170),
    "setuid": (105, 146), "setxattr": (188, 5), "setxattrat": (463, 463), "shmat": (30, 196), "shmctl": (31, 195),
    "shmdt": (67, 197), "shmget": (29, 194), "socket": (41, 198), "socketpair": (53, 199), "splice": (275, 76),
    "statmount": (457, 457), "swapoff": (168, 225), "swapon": (167, 224), "symlink": (88, None),
    "symlinkat": (266, 36), "sync": (162, 81), "syncfs": (306, 267), "sysfs": (139, None), "syslog": (103, 116),
    "tee": (276, 77), "tgkill": (234, 131), "timer_create": (222, 107), "tkill": (200, 130), "truncate": (76, 45),
    "tuxcall": (184, None),
    "umask": (95, 166), "umount2": (166, 39), "unshare": (272, 97), "uselib": (134, None), "userfaultfd": (323, 282),
    "ustat": (136, None), "utime": (132, None), "utimensat": (280, 88), "utimes": (235, None), "vfork": (58, None),
    "vhangup": (153, 58), "vmsplice": (278, 75), "vserver": (236, None),
}
# fmt: on
