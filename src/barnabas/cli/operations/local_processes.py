"""The processes of this machine that listen on a port or have a file open, from /proc.

Linux shows the open files of a process to its own user and to root.
"""

import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.config.addresses import ALL_INTERFACES
from barnabas.net.listening_sockets import plain_host

MAX_COMMAND_LENGTH = 50
"""In characters: a Java command line has thousands."""

_PROC = Path("/proc")
_LISTEN = "0A"
"""The state of a listening socket in /proc/net/tcp."""


@dataclass(slots=True, frozen=True)
class LocalProcess:
    pid: int
    command: str
    """Its command line, shortened."""

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})" if self.command else f"process {self.pid}"


def process_on_port(host: str, port: int) -> LocalProcess | None:
    """Returns the process that listens on an address of this machine.

    Returns None if none does, if it belongs to another user, or if the host is another machine.
    """
    listening = [entry for entry in _listening_sockets() if entry.port == port]
    is_any = not host or host in ALL_INTERFACES
    if not listening or not (addresses := _local_addresses(host)):
        return None
    inodes = {
        f"socket:[{entry.inode}]"
        for entry in listening
        if is_any or entry.host in addresses or entry.host in ALL_INTERFACES
    }
    return _find_process(inodes.__contains__)


def describe_taken_port(host: str, port: int) -> str:
    """Returns `Port 9092 is in use by process 4711 (...)`, as far as this user may know it."""
    process = process_on_port(host, port)
    return f"Port {port} is in use by {process or 'another process'}"


def describe_taken_directory(directory: str) -> str:
    """Returns `DIRECTORY is in use by process 4711 (...)`, for a log directory that is locked."""
    process = process_with_file(Path(directory, ".lock"))
    return f"{directory} is in use by {process or 'another process'}"


def process_with_file(path: Path) -> LocalProcess | None:
    """Returns a process that has the file open, other than this one."""
    return _find_process(str(path.resolve()).__eq__)


@dataclass(slots=True, frozen=True)
class _ListeningSocket:
    host: str
    port: int
    inode: str


def _listening_sockets() -> Iterator[_ListeningSocket]:
    for table in ("tcp", "tcp6"):
        try:
            rows = (_PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue  # this machine has no IPv6
        for columns in map(str.split, rows):
            if columns[3] == _LISTEN:
                host, port = columns[1].split(":")
                yield _ListeningSocket(_decode_address(host), int(port, 16), columns[9])


def _decode_address(text: str) -> str:
    """Decodes an address of /proc/net/tcp: words of 32 bits in the byte order of the machine."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return plain_host(socket.inet_ntop(family, packed))


def _local_addresses(host: str) -> set[str]:
    """Returns the addresses of the host that this machine has; none if it is another machine."""
    try:
        resolved = socket.getaddrinfo(host or "localhost", 0, type=socket.SOCK_STREAM)
    except OSError:
        return set()
    found = set()
    for family, *_, address in resolved:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(address)  # possible only with an address of this machine
            except OSError:
                continue
        found.add(str(address[0]))
    return found


def _find_process(is_wanted: Callable[[str], bool]) -> LocalProcess | None:
    """Returns the first process, other than this one, with an open file that is wanted."""
    own = str(os.getpid())
    pids = sorted((entry.name for entry in _PROC.iterdir() if entry.name.isdigit()), key=int)
    for pid in pids:
        if pid != own and any(map(is_wanted, _open_files(pid))):
            return LocalProcess(int(pid), _read_command(pid))
    return None


def _open_files(pid: str) -> Iterator[str]:
    try:
        descriptors = list((_PROC / pid / "fd").iterdir())
    except OSError:
        return  # it has exited, or belongs to another user
    for descriptor in descriptors:
        try:
            yield str(descriptor.readlink())
        except OSError:
            continue  # it was closed meanwhile


def _read_command(pid: str) -> str:
    try:
        text = (_PROC / pid / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
    return shorten_command(text.rstrip("\0").split("\0"))


def shorten_command(words: Sequence[str]) -> str:
    """Returns a command line as a person would name it, such as `java ... kafka.Kafka FILE`.

    The path of the program is left out, and so is the interpreter of a Python program.
    """
    words = _without_interpreter(words)
    words = [Path(words[0]).name, *words[1:]]
    line = " ".join(words)
    if len(line) > MAX_COMMAND_LENGTH:
        is_java = words[0] == "java" and (last := _last_words(words))
        line = f"java ... {last}" if is_java else f"{line[: MAX_COMMAND_LENGTH - 3]}..."
    return line if line.isprintable() else repr(line)


def _without_interpreter(words: Sequence[str]) -> Sequence[str]:
    if not Path(words[0]).name.startswith("python") or len(words) == 1:
        return words
    if words[1] == "-m" and len(words) > 2:
        return [words[2].removesuffix(".cli"), *words[3:]]
    return words if words[1].startswith("-") else words[1:]


def _last_words(words: Sequence[str]) -> str:
    """Returns the last words that fit, without options: the main class and its arguments."""
    last: list[str] = []
    for word in reversed(words[1:]):
        if len(" ".join([words[0], "...", word, *last])) > MAX_COMMAND_LENGTH:
            break
        last.insert(0, word)
    while last and last[0].startswith("-"):
        last.pop(0)
    return " ".join(last)
