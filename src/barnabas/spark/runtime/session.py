"""The Spark session of a long-running service.

It is made when it is first needed, and again when its JVM has died. What Spark prints goes to the
log of this process, not to the terminal.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.spark.runtime.errors import QueryError
from barnabas.spark.runtime.temporary_directory import LockedDirectory, fast_folder

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
output_log = logging.getLogger(f"{__name__}.output")
"""What the JVM and Python workers print."""

DEFAULTS = {
    "spark.master": "local[*, 3]",
    "spark.driver.memory": "512m",
    "spark.log.level": "FATAL",
    "spark.python.task.killTimeout": "100ms",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""`local[*, 3]` repeats a task whose worker has died, where `local[*]` lets its query fail. Errors
need no log of Spark's: they are in the states of queries. The worker of an item whose query has
ended is killed at once, not after two seconds."""

LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Where no other machine connects to the driver."""

PLANNING_JAVA_OPTIONS = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1")
"""For a JVM that only plans, while Python processes the data: without threads for garbage
collection, a file in /tmp for performance counters, and the second compiler. A micro-batch takes
half of the CPU time, and the process 200 MB less."""

PROCESSING_JAVA_OPTIONS = ("-XX:-UsePerfData",)
"""For a JVM that also processes rows: queries of Spark SQL, or its own formats."""

_REMOTE_SETTING = "spark.remote"
_REMOTE_VARIABLE = "SPARK_REMOTE"
_JAVA_OPTIONS_SETTING = "spark.driver.extraJavaOptions"
_LOCAL_DIR_SETTING = "spark.local.dir"
_SOCKET_DIR_SETTING = "spark.python.unix.domain.socket.dir"
_MAX_OUTPUT_LINES = 20
_EXIT_TIMEOUT_S = 10.0


class ServiceSession:
    """Call the object for the session: it is what queries take. Thread-safe."""

    def __init__(
        self,
        settings: Mapping[str, str],
        *,
        app_name: str,
        preload: Sequence[str] = (),
        java_options: Sequence[str] = PLANNING_JAVA_OPTIONS,
    ) -> None:
        """`settings` are Spark's; `preload` are modules to import before workers are forked.
        `java_options` come before those of the settings, which override them.

        Raises QueryError for settings with which a service cannot run.
        """
        self._settings = service_settings(settings, java_options)
        self._app_name = app_name
        self._preload = preload
        self._lock = threading.Lock()
        self._session: SparkSession | None = None
        self._jvm: _Jvm | None = None

    def __call__(self) -> SparkSession:
        """Returns the session. Makes one if there is none, or if it was stopped or has died.

        Raises PrerequisiteError or QueryError if Spark does not start.
        """
        with self._lock:
            if self._session is None or not self._is_alive():
                self._close()
                self._session = self._start()
            return self._session

    def is_alive(self) -> bool:
        """Whether there is a session. It does not wait for one that is being made."""
        return self._session is not None and self._is_alive()

    def close(self) -> None:
        """Stop the session and its JVM."""
        with self._lock:
            self._close()

    def _is_alive(self) -> bool:
        session, jvm = self._session, self._jvm
        if session is None or session.sparkContext._jsc is None:
            return False
        if jvm is not None and not jvm.is_alive():
            return False
        try:
            return not session.sparkContext._jsc.sc().isStopped()
        except Exception:  # the JVM has just ended
            return False

    def _start(self) -> SparkSession:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        from barnabas.spark.daemon import PRELOAD_VARIABLE
        from barnabas.spark.session import configure

        builder = configure(SparkSession.Builder()).appName(self._app_name)
        if SparkContext._gateway is not None:  # a JVM that others of this process use too
            return _build(builder, self._settings)
        jvm = _Jvm()
        settings = self._settings | jvm.settings(self._settings)
        if self._preload:
            settings[f"spark.executorEnv.{PRELOAD_VARIABLE}"] = ",".join(self._preload)
        try:
            configured = SparkConf(loadDefaults=False).setAll(
                [*builder._options.items(), *settings.items()]
            )
            jvm.start(configured)
            session = _build(builder, settings)
            _silence(session)
        except BaseException as error:
            reason = str(error)  # which asks the JVM
            jvm.close()
            if isinstance(error, Exception):
                raise QueryError(f"Spark does not start: {reason}\n{jvm.last_output()}") from None
            raise
        self._jvm = jvm
        return session

    def _close(self) -> None:
        session, jvm = self._session, self._jvm
        self._session = self._jvm = None
        if jvm is not None:
            if session is not None and jvm.is_alive():
                with contextlib.suppress(Exception):
                    session.stop()
            jvm.close()


def service_settings(
    settings: Mapping[str, str], java_options: Sequence[str] = ()
) -> dict[str, str]:
    """Returns the settings with the defaults of a service.

    Raises QueryError for Spark Connect.
    """
    remote = settings.get(_REMOTE_SETTING) or os.environ.get(_REMOTE_VARIABLE)
    if remote or settings.get("spark.api.mode") == "connect":
        raise QueryError(
            f"{_REMOTE_SETTING}={remote or ''} is not supported: on Spark Connect, foreachBatch"
            " runs in the server and cannot commit here. Set spark.master instead, such as"
            f" spark://host:7077, and unset {_REMOTE_VARIABLE}"
        )
    merged = DEFAULTS | dict(settings)
    if merged["spark.master"].startswith("local"):
        merged = LOCAL_DEFAULTS | merged
    options = [*java_options, *filter(None, [merged.get(_JAVA_OPTIONS_SETTING)])]
    if options:
        merged[_JAVA_OPTIONS_SETTING] = " ".join(options)
    return merged


def _build(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _silence(session: SparkSession) -> None:
    """Log what PySpark prints or logs each time that a connection of the JVM ends."""
    py4j_log = logging.getLogger("py4j")
    if py4j_log.level == logging.NOTSET:
        py4j_log.setLevel(logging.WARNING)
    server: Any = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: log.debug("accumulators failed", exc_info=True)


class _Jvm:
    """Spark's process, with a directory for its temporary files, and one with a short path for its
    sockets: a path of more than 107 bytes is not possible."""

    def __init__(self) -> None:
        self._directory = LockedDirectory("spark", Path(tempfile.gettempdir()))
        self._sockets = LockedDirectory("spark-sockets", fast_folder())
        self._gateway: JavaGateway | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._output: deque[str] = deque(maxlen=_MAX_OUTPUT_LINES)

    def settings(self, given: Mapping[str, str]) -> dict[str, str]:
        """Returns what keeps temporary files in the directories."""
        path = str(self._directory.path)
        options = f"-Djava.io.tmpdir={path} {given.get(_JAVA_OPTIONS_SETTING, '')}"
        return {
            _JAVA_OPTIONS_SETTING: options.strip(),
            _LOCAL_DIR_SETTING: given.get(_LOCAL_DIR_SETTING, path),
            _SOCKET_DIR_SETTING: given.get(_SOCKET_DIR_SETTING, str(self._sockets.path)),
        }

    def start(self, settings: SparkConf) -> None:
        from pyspark import SparkContext
        from pyspark.java_gateway import launch_gateway

        output_read, output_write = os.pipe()
        try:
            popen_options = {"stdout": output_write, "stderr": output_write}
            threading.Thread(
                target=self._log_output, args=(output_read,), name="Spark's output", daemon=True
            ).start()
            self._gateway = launch_gateway(settings, popen_options)  # type: ignore[no-untyped-call]
        finally:
            os.close(output_write)
        self._process = self._gateway.proc
        SparkContext._ensure_initialized(gateway=self._gateway)

    def is_alive(self) -> bool:
        return self._process is None or self._process.poll() is None

    def last_output(self) -> str:
        return "\n".join(self._output)

    def close(self) -> None:
        """End the process, and have PySpark forget it."""
        if self._process is not None:
            _end(self._process)  # first: Py4J may wait for responses of a process that runs
        if self._gateway is not None:
            _forget(self._gateway)
            for close in (self._gateway.shutdown_callback_server, self._gateway.close):
                with contextlib.suppress(Exception):
                    close()
        self._directory.remove()
        self._sockets.remove()

    def _log_output(self, output: int) -> None:
        with open(output, "rb") as lines:
            for line in lines:
                text = line.decode(errors="replace").rstrip()
                self._output.append(text)
                output_log.info("%s", text)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()  # the JVM ends when its standard input does
    try:
        process.wait(_EXIT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _forget(gateway: JavaGateway) -> None:
    """Let PySpark start another JVM in this process."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with SparkContext._lock:
        if SparkContext._gateway is not gateway:
            return
        context = SparkContext._active_spark_context
        if context is not None:
            context._jsc = None  # calls to it would fail
            with contextlib.suppress(Exception):
                context.stop()
        SparkContext._active_spark_context = None
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
