"""Which system calls a confined process may make: those for memory, time, and the pipes that it has.

None opens a file, starts a program, a process or a thread, sends a signal, looks into another process, or makes a
connection.  Numbers are those of Linux, which gives each kind of processor its own and never changes them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ABI", "Abi"]

_NAMES = (
    *("read", "write", "close", "fstat", "lseek", "mmap", "mprotect", "munmap", "brk", "mremap", "madvise"),
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall"),
    *("sched_yield", "sched_getaffinity", "getpid", "gettid", "futex", "membarrier", "rseq"),
    *("gettimeofday", "getrusage", "times", "clock_gettime", "clock_getres", "clock_nanosleep", "getrandom"),
    *("exit", "exit_group"),
)


@dataclass(frozen=True)
class Abi:
    """How one kind of processor names system calls.

    Attributes
    ----------
    audit_arch : int
        What the kernel calls the kind.
    seccomp : int
        Number of the call that installs a filter.
    allowed : dict of str to int
    """

    audit_arch: int
    seccomp: int
    allowed: dict[str, int]


def _numbers(*numbers: int) -> dict[str, int]:
    return dict(zip(_NAMES, numbers, strict=True))


ABI = {
    "x86_64": Abi(
        audit_arch=0xC000003E,
        seccomp=317,
        allowed=_numbers(
            *(0, 1, 3, 5, 8, 9, 10, 11, 12, 25, 28),
            *(13, 14, 15, 131, 219),
            *(24, 204, 39, 186, 202, 324, 334),
            *(96, 98, 100, 228, 229, 230, 318),
            *(60, 231),
        ),
    ),
    "aarch64": Abi(
        audit_arch=0xC00000B7,
        seccomp=277,
        allowed=_numbers(
            *(63, 64, 57, 80, 62, 222, 226, 215, 214, 216, 233),
            *(134, 135, 139, 132, 128),
            *(124, 123, 172, 178, 98, 283, 293),
            *(169, 165, 153, 113, 114, 115, 278),
            *(93, 94),
        ),
    ),
}
"""By what `platform.machine` says."""
