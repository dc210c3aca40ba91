"""The system calls that nothing inside a sandbox needs and that could lead out of it, with their numbers everywhere."""

from __future__ import annotations

ARCHITECTURES = (0xC000003E, 0x40000003, 0xC00000B7, 0x40000028)
"""x86_64 (and x32), i386, aarch64, arm, by the kernel's words for them (AUDIT_ARCH_*): one kernel serves two of them. The
numbers below stand in this order; None where an architecture lacks the call. From 424 on all have the same."""

REFUSED: dict[str, tuple[int | None, int | None, int | None, int | None]] = {
    # namespaces, and the roots and mounts that they would give
    "setns": (308, 346, 268, 375),
    "chroot": (161, 61, 51, 61),
    "pivot_root": (155, 217, 41, 218),
    "mount": (165, 21, 40, 21),
    "umount": (None, 22, None, None),
    "umount2": (166, 52, 39, 52),
    "move_mount": (429, 429, 429, 429),
    "open_tree": (428, 428, 428, 428),
    "open_tree_attr": (467, 467, 467, 467),
    "fsopen": (430, 430, 430, 430),
    "fsconfig": (431, 431, 431, 431),
    "fsmount": (432, 432, 432, 432),
    "fspick": (433, 433, 433, 433),
    "mount_setattr": (442, 442, 442, 442),
    # another process's memory, registers and descriptors
    "ptrace": (101, 26, 117, 26),
    "process_vm_readv": (310, 347, 270, 376),
    "process_vm_writev": (311, 348, 271, 377),
    "pidfd_getfd": (438, 438, 438, 438),
    # keys, which know no namespace
    "add_key": (248, 286, 217, 309),
    "request_key": (249, 287, 218, 310),
    "keyctl": (250, 288, 219, 311),
    # large parts of the kernel that nothing here needs
    "bpf": (321, 357, 280, 386),
    "io_uring_setup": (425, 425, 425, 425),
    "io_uring_enter": (426, 426, 426, 426),
    "io_uring_register": (427, 427, 427, 427),
    "perf_event_open": (298, 336, 241, 364),
    "userfaultfd": (323, 374, 282, 388),
    "lookup_dcookie": (212, 253, 18, 249),
    "nfsservctl": (180, 169, 42, 169),
    "_sysctl": (156, 149, None, 149),
    "uselib": (134, 86, None, 86),
    "vm86": (None, 166, None, None),
    "vm86old": (None, 113, None, None),
    # files by number instead of by name
    "open_by_handle_at": (304, 342, 265, 371),
    # the machine itself
    "kexec_load": (246, 283, 104, 347),
    "kexec_file_load": (320, None, 294, 401),
    "create_module": (174, 127, None, None),
    "init_module": (175, 128, 105, 128),
    "finit_module": (313, 350, 273, 379),
    "delete_module": (176, 129, 106, 129),
    "get_kernel_syms": (177, 130, None, None),
    "query_module": (178, 167, None, None),
    "swapon": (167, 87, 224, 87),
    "swapoff": (168, 115, 225, 115),
    "acct": (163, 51, 89, 51),
    "quotactl": (179, 131, 60, 131),
    "quotactl_fd": (443, 443, 443, 443),
    "reboot": (169, 88, 142, 88),
    "iopl": (172, 110, None, None),
    "ioperm": (173, 101, None, None),
    "syslog": (103, 103, 116, 103),
    "vhangup": (153, 111, 58, 111),
    "settimeofday": (164, 79, 170, 79),
    "stime": (None, 25, None, None),
    "adjtimex": (159, 124, 171, 124),
    "clock_settime": (227, 264, 112, 262),
    "clock_settime64": (None, 404, None, 404),
    "clock_adjtime": (305, 343, 266, 372),
    "clock_adjtime64": (None, 405, None, 405),
}

CLONE = (56, 120, 220, 120)
UNSHARE = (272, 310, 97, 337)
CLONE3 = (435, 435, 435, 435)
IOCTL = (16, 54, 29, 54)
PERSONALITY = (135, 136, 92, 136)
SOCKET = (41, 359, 198, 281)
SOCKETPAIR = (53, 360, 199, 288)
SOCKETCALL = (None, 102, None, None)

NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
NEW_TIME = 0x80
"""CLONE_NEWTIME, a flag of unshare only: clone has the signal at exit in these bits."""
TYPING = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which type into the terminal as if the user did."""
PERSONALITIES = (0, 8, 0x20000, 0x20008, 0xFFFFFFFF)
"""Linux, Linux of 32 bits, each with the version told as 2.6, and the question which. Others make memory executable, mapped at
zero, or laid out as ever."""
FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6. The many others are rarely used parts of the kernel."""
NETLINK = 16
"""AF_NETLINK with protocol 0 (routes) alone: names of hosts are looked up with its help."""
