"""Spark's runner of a streaming source, forked from a process that has imported what it uses.

Spark starts a Python for the source of every streaming query, and waits while that imports: a
third of a second. So the first one of an application leaves a process behind that has imported the
same. It listens among Spark's own files, and ends with them, or with Spark's JVM. Whichever comes
later has it fork a runner with its own environment and standard streams, and then lives as long as
that one and no longer: to Spark, which knows no better, it is the runner.

Without a place to listen, or where processes cannot be watched (only Linux can), each runner
imports for itself.
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
"""What Spark starts."""

_IMPORTED = (RUNNER, "barnabas.spark.source.row_decoder", "barnabas.spark.source.stream")
_FOLDERS = "SPARK_LOCAL_DIRS"
_STANDARD_STREAMS = (0, 1, 2)
_SIZE = struct.Struct("!I")
_TAKEN_OVER = b"."
_LOOK_MS = 1_000


def run() -> None:
    """Run Spark's runner: here, or in a fork of the process that was left behind."""
    spark, place = os.getppid(), _place()
    if place is None:
        _run_here()
    elif not _stand_in(place):
        for module in _IMPORTED:
            import_module(module)
        _leave_behind(place, spark)
        _run_here()


def _run_here() -> None:
    sys.modules.pop(RUNNER, None)  # it is to be the main module
    runpy.run_module(RUNNER, run_name="__main__", alter_sys=True)


def _place() -> Path | None:
    """Where the process that was left behind listens: of this application, Python and path."""
    folder = os.environ.get(_FOLDERS, "").split(",")[0]
    if not folder or not hasattr(os, "pidfd_open"):
        return None
    imported_from = f"{sys.executable}:{os.environ.get('PYTHONPATH', '')}".encode()
    return Path(folder) / f"barnabas-{zlib.crc32(imported_from):08x}.sock"


def _stand_in(place: Path) -> bool:
    """Have a runner forked, and wait for its end; False where nobody does."""
    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
        connection.connect(str(place))
        environment = json.dumps(dict(os.environ)).encode()
        socket.send_fds(connection, [_SIZE.pack(len(environment))], _STANDARD_STREAMS)
        connection.sendall(environment)
        if connection.recv(1) == _TAKEN_OVER:
            connection.recv(1)
            return True
    return False


def _leave_behind(place: Path, spark: int) -> None:
    """Fork the process that forks runners, if there is none yet."""
    try:
        watched, listener = os.pidfd_open(spark), _listening(place)
    except OSError:
        return
    with listener:
        if os.fork() == 0:
            _fork_runners(listener, place, watched)
    os.close(watched)


def _listening(place: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o077)  # for nobody else to connect
    try:
        listener.bind(str(place))
    finally:
        os.umask(mask)
    listener.listen()
    return listener


def _fork_runners(listener: socket.socket, place: Path, spark: int) -> NoReturn:
    """Until Spark's process ends, or has removed its files."""
    nothing = os.open(os.devnull, os.O_RDWR)
    _take_streams([nothing] * len(_STANDARD_STREAMS))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for forks
    gc.freeze()
    events = select.poll()
    events.register(listener, select.POLLIN)
    events.register(spark, select.POLLIN)
    while place.exists():
        ready = {file for file, _ in events.poll(_LOOK_MS)}
        if spark in ready:
            break
        if listener.fileno() in ready:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    os.close(spark)
                    _become(connection)
    sys.exit()


def _become(connection: socket.socket) -> NoReturn:
    """The runner that whoever is connected was to be."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, streams, _, _ = socket.recv_fds(connection, _SIZE.size, len(_STANDARD_STREAMS))
    (size_bytes,) = _SIZE.unpack(size)
    environment = connection.recv(size_bytes, socket.MSG_WAITALL)
    _take_streams(streams)
    os.environ.clear()
    os.environ.update(json.loads(environment))
    connection.sendall(_TAKEN_OVER)
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    _run_here()
    sys.exit()


def _end_with(connection: socket.socket) -> None:
    """Spark ended the one that stands in for us, or it has died."""
    connection.recv(1)
    os._exit(1)


def _take_streams(streams: list[int]) -> None:
    for standard, stream in zip(_STANDARD_STREAMS, streams, strict=True):
        os.dup2(stream, standard)
