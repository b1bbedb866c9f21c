"""The driver's end of the connection over which the source of a work query asks for items."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

from barnabas.spark.runtime.work_run import PlannedBatch
from barnabas.spark.runtime.work_source import KEY_FILE, SOCKET_FILE, Plan

log = logging.getLogger(__name__)

_KEY_SIZE_BYTES = 32


class PlannerServer:
    """Serves one runner in a thread, until either ends."""

    def __init__(self, directory: Path, plan: Callable[[], PlannedBatch | None], name: str) -> None:
        self._plan = plan
        self._address = str(directory / SOCKET_FILE)
        self._key = secrets.token_bytes(_KEY_SIZE_BYTES)
        _write_private(directory / KEY_FILE, self._key)
        self._listener = Listener(self._address, family="AF_UNIX", authkey=self._key)
        self._is_connected = threading.Event()
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._is_closed = False
        threading.Thread(target=self._serve, name=f"planner of {name}", daemon=True).start()

    def close(self) -> None:
        """End the connection. A call of the planner that runs is not waited for."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            connection = self._connection
        with contextlib.suppress(OSError, EOFError):
            if connection is not None:
                _shut_down(connection)
            elif not self._is_connected.is_set():
                # The thread waits for a connection, which closing the listener would not end.
                Client(self._address, authkey=self._key).close()
        self._is_connected.wait()

    def _serve(self) -> None:
        try:
            with self._listener:
                connection = self._accept()
        finally:
            self._is_connected.set()
        with connection:
            with self._lock:
                self._connection = connection
            with contextlib.suppress(OSError, EOFError):
                if not self._is_closed:
                    self._respond(connection)
            with self._lock:
                self._connection = None

    def _accept(self) -> Connection:
        while True:
            try:
                return self._listener.accept()
            except Exception as error:  # the process at the other end had not the key, or died
                log.debug("connection to the planner failed: %s", error)

    def _respond(self, connection: Connection) -> None:
        while True:
            connection.recv_bytes()
            connection.send(self._next_plan())

    def _next_plan(self) -> Plan:
        try:
            batch = self._plan()
        except Exception as error:
            return "".join(traceback.format_exception(error))
        return None if batch is None else (batch.number, batch.items)


def _write_private(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
        file.write(content)


def _shut_down(connection: Connection) -> None:
    """Wake up the thread that reads from it, which closing it does not do."""
    with socket.socket(fileno=os.dup(connection.fileno())) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)
