"""A network of one's own for a cluster, and ports that nobody else can take.

TensorFlow's servers listen on every interface and ask nobody who they are, so a cluster belongs where
nobody outside reaches it: in a network namespace of its own, whose loopback is its only interface. An
ordinary user may make one inside a user namespace, where the system allows that.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterable

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP_RUNNING = 0x8914, 0x41
OFF = "COURSE_CLUSTER_ISOLATION"  # "off" in the environment leaves the cluster in the machine's own network


def enter() -> None:
    """Move this process, which must have one thread, into a user and a network namespace of its own.

    Raises:
        OSError: the system does not allow it. The process may then be half-way, and is of no more use.
    """
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):  # os.unshare is there from Python 3.12 on
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_RUNNING))


def possible() -> bool:
    """Whether `enter` would work here: a throw-away child tries, because a half-made move cannot be undone."""
    if os.environ.get(OFF) == "off" or not hasattr(ctypes.CDLL(None), "unshare"):
        return False
    child = os.fork()
    if child == 0:
        try:
            enter()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def hold_ports(count: int, ports: Iterable[int] = (0,)) -> list[socket.socket]:
    """Return `count` sockets bound to different free TCP ports, taken from `ports` (0: any free one).

    A held port can be bound once more by this user's processes that also ask to share it
    (TF_GRPC_REUSE_PORT=1), and by nobody else: so none is lost between choosing and using it.

    Raises:
        OSError: fewer than `count` of `ports` are free.
    """
    held: list[socket.socket] = []
    candidates = [0] * count if tuple(ports) == (0,) else list(ports)
    for port in candidates:
        if len(held) < count and (port == 0 or _is_free(port)):
            shared = socket.socket()
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            shared.bind(("127.0.0.1", port))
            held.append(shared)
    if len(held) < count:
        for one in held:
            one.close()
        raise OSError(f"{len(held)} of the {len(candidates)} ports offered are free, and {count} are needed")
    return held


def _is_free(port: int) -> bool:
    """Whether nobody uses a port on any interface, not even shared."""
    with socket.socket() as probe:
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
