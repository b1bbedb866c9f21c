"""A fork server for Spark's runners of streaming sources, so that only the first one imports.

Spark starts a Python process for the source of every streaming query, and waits a third of a second
for its imports. So the first runner of an application forks a server, which has imported the same
modules. The server listens on a socket in Spark's local directory, and ends when that directory is
removed or Spark's JVM ends. Every later process sends the server its environment and standard
streams, the server forks a runner with them, and the process lives exactly as long as that runner:
Spark takes it for the runner.

Without a local directory, or without pidfd_open (only Linux has it), each runner imports for
itself.
"""

import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import zlib
from importlib import import_module
from pathlib import Path
from typing import NoReturn

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"
"""The module that Spark starts."""

_PRELOADED = (
    RUNNER,
    "barnabas.spark.runtime.work_source",
    "barnabas.spark.source.row_decoder",
    "barnabas.spark.source.stream",
)
_LOCAL_DIRS = "SPARK_LOCAL_DIRS"
_STANDARD_STREAMS = (0, 1, 2)
_SIZE = struct.Struct("!I")
_FORKED = b"."
_POLL_INTERVAL_MS = 1_000


def run() -> None:
    """Run Spark's runner: in this process, or in a fork of the server."""
    spark_pid, socket_path = os.getppid(), _socket_path()
    if socket_path is None:
        _run_here()
    elif not _run_in_fork(socket_path):
        for module in _PRELOADED:
            import_module(module)
        _start_server(socket_path, spark_pid)
        _run_here()


def _run_here() -> None:
    sys.modules.pop(RUNNER, None)  # runpy runs it as the main module
    runpy.run_module(RUNNER, run_name="__main__", alter_sys=True)


def _socket_path() -> Path | None:
    """Returns the socket of the server for this application, Python and import path."""
    folder = os.environ.get(_LOCAL_DIRS, "").split(",")[0]
    if not folder or not hasattr(os, "pidfd_open"):
        return None
    imported_from = f"{sys.executable}:{os.environ.get('PYTHONPATH', '')}".encode()
    return Path(folder) / f"barnabas-{zlib.crc32(imported_from):08x}.sock"


def _run_in_fork(socket_path: Path) -> bool:
    """Have the server fork a runner, and wait for its end. Returns False if there is no server."""
    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
        connection.connect(str(socket_path))
        environment = json.dumps(dict(os.environ)).encode()
        socket.send_fds(connection, [_SIZE.pack(len(environment))], _STANDARD_STREAMS)
        connection.sendall(environment)
        if connection.recv(1) == _FORKED:
            connection.recv(1)
            return True
    return False


def _start_server(socket_path: Path, spark_pid: int) -> None:
    """Fork the server, unless there is one."""
    try:
        spark_pidfd, listener = os.pidfd_open(spark_pid), _listen(socket_path)
    except OSError:
        return
    with listener:
        if os.fork() == 0:
            _fork_runners(listener, socket_path, spark_pidfd)
    os.close(spark_pidfd)


def _listen(socket_path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o077)  # no other user may connect
    try:
        listener.bind(str(socket_path))
    finally:
        os.umask(mask)
    listener.listen()
    return listener


def _fork_runners(listener: socket.socket, socket_path: Path, spark_pidfd: int) -> NoReturn:
    """Serve until Spark's process ends or removes its files."""
    devnull = os.open(os.devnull, os.O_RDWR)
    _replace_streams([devnull] * len(_STANDARD_STREAMS))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks need not be waited for
    gc.freeze()
    events = select.poll()
    events.register(listener, select.POLLIN)
    events.register(spark_pidfd, select.POLLIN)
    while socket_path.exists():
        ready = {file for file, _ in events.poll(_POLL_INTERVAL_MS)}
        if spark_pidfd in ready:
            break
        if listener.fileno() in ready:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    os.close(spark_pidfd)
                    _run_for(connection)
    sys.exit()


def _run_for(connection: socket.socket) -> NoReturn:
    """Run as the runner of the connected process, with its environment and streams."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, streams, _, _ = socket.recv_fds(connection, _SIZE.size, len(_STANDARD_STREAMS))
    (size_bytes,) = _SIZE.unpack(size)
    environment = connection.recv(size_bytes, socket.MSG_WAITALL)
    _replace_streams(streams)
    os.environ.clear()
    os.environ.update(json.loads(environment))
    connection.sendall(_FORKED)
    threading.Thread(target=_exit_with, args=(connection,), daemon=True).start()
    _run_here()
    sys.exit()


def _exit_with(connection: socket.socket) -> None:
    """Exit when Spark ends the connected process, or when it dies."""
    with contextlib.suppress(
        OSError
    ):  # it resets the connection if it dies before it has read everything
        connection.recv(1)
    os._exit(1)


def _replace_streams(streams: list[int]) -> None:
    for standard, stream in zip(_STANDARD_STREAMS, streams, strict=True):
        os.dup2(stream, standard)
