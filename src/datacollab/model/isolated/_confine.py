"""Taking away from this process all that a model needs not, for good."""

from __future__ import annotations

import ctypes
import errno
import math
import os
import platform
import signal
import sys
import time

from ._system_calls import ABI

__all__ = ["CPU_SECONDS", "MEMORY", "CannotConfineError", "confine"]

MEMORY = 2**30
"""Bytes of address space that a model may take, beyond what the libraries take that run it."""
CPU_SECONDS = 3_600
"""Of a process, over all that it is asked."""

_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_GREATER, _RETURN = 0x20, 0x15, 0x25, 0x06
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000 | errno.EPERM, 0x7FFF0000
_NUMBER_AT, _ARCH_AT, _THIRD_ARGUMENT_AT = 0, 4, 32
_LAST_ADVICE = 8
"""MADV_FREE; what comes after is about files, other processes' memory, or the machine's."""
_END_WITH_PARENT, _DUMPABLE, _NO_NEW_PRIVILEGES = 1, 4, 38
_CAPABILITIES_VERSION = 0x20080522
_SET_FILTER, _ALL_THREADS = 1, 1


class CannotConfineError(Exception):
    """The machine offers no way to confine a process; the text says what is missing."""


def confine(*, memory: int = MEMORY, cpu_seconds: int = CPU_SECONDS) -> None:
    """Limit memory, processor time and files, and let nothing but `_system_calls` be called from here on.

    There is no way back.  Modules that are to be used have to be imported before.

    Parameters
    ----------
    memory : int
        Bytes beyond those that are taken now.
    cpu_seconds : int
        Beyond those that were used until now.

    Raises
    ------
    CannotConfineError
        On other systems than Linux on x86_64 and aarch64, and where the kernel has no filters of system calls, or
        something else is in the way.
    """
    if sys.platform != "linux" or platform.machine() not in ABI:
        raise CannotConfineError(f"{platform.system()} on {platform.machine() or 'an unknown processor'}")
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        _limit_resources(memory, cpu_seconds)
        _give_up_privileges(libc)
        _filter_calls(libc)
    except (OSError, ValueError) as error:
        raise CannotConfineError(f"{type(error).__name__} while it was confined") from None
    try:
        os.open("/", os.O_RDONLY)
    except PermissionError:
        return
    raise CannotConfineError("the kernel does not filter system calls")


def _limit_resources(memory: int, cpu_seconds: int) -> None:
    import resource

    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    processor = {min(os.sched_getaffinity(0), key=lambda _: os.urandom(1))}
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), processor)
    seconds = math.ceil(time.process_time()) + cpu_seconds
    for kind, soft, hard in (
        (resource.RLIMIT_AS, taken + memory, taken + memory),
        # The soft limit tells why the process ends, the hard one ends it if it does not listen.
        (resource.RLIMIT_CPU, seconds, seconds + 5),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_NPROC, 0, 0),
    ):
        allowed = resource.getrlimit(kind)[1]
        if allowed != resource.RLIM_INFINITY:
            soft, hard = min(soft, allowed), min(hard, allowed)
        resource.setrlimit(kind, (soft, hard))


def _give_up_privileges(libc: ctypes.CDLL) -> None:
    """No capabilities, no image of the memory for whoever handles crashes, and no life after the party's program."""
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0), (ctypes.c_uint32 * 6)()
    if libc.capset(ctypes.byref(header), ctypes.byref(none)) != 0:
        raise CannotConfineError("capabilities cannot be given up")
    for option, value in ((_DUMPABLE, 0), (_END_WITH_PARENT, signal.SIGKILL), (_NO_NEW_PRIVILEGES, 1)):
        if libc.prctl(option, int(value), 0, 0, 0) != 0:
            raise CannotConfineError("the kernel does not let privileges be given up")


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def _filter_calls(libc: ctypes.CDLL) -> None:
    """A program for the kernel's packet filter, which looks at the number of each call, and of `madvise` at the advice.

    Some advice is about the machine's memory rather than about the process's.
    """
    abi = ABI[platform.machine()]
    numbers = sorted(number for name, number in abi.allowed.items() if name != "madvise")
    steps = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_JUMP_IF_EQUAL, 1, 0, abi.audit_arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_IF_EQUAL, 0, 4, abi.allowed["madvise"]),
        (_LOAD, 0, 0, _THIRD_ARGUMENT_AT),
        (_JUMP_IF_GREATER, 0, 1, _LAST_ADVICE),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
        # Each of them jumps to the last instruction, over the rest of the list and the refusal.
        *((_JUMP_IF_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    program = _Program(len(steps), (_Instruction * len(steps))(*(_Instruction(*step) for step in steps)))
    if libc.syscall(ctypes.c_long(abi.seccomp), _SET_FILTER, _ALL_THREADS, ctypes.byref(program)) != 0:
        raise CannotConfineError("the kernel takes no filter of system calls")
