"""A Spark cluster on loopback: a master and workers as processes; dead workers are restarted."""

import os
import socket
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import pyspark
from tests.spark.exactly_once.victims import MARK
from tests.wait import wait_until

from barnabas.testing.ports import LOOPBACK, free_port

START_TIMEOUT_S = 120.0

_Process = subprocess.Popen[bytes]

_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_LOG = """
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""
QUICK_TO_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""A JVM that runs for seconds should not spend time on optimization."""


@dataclass(slots=True)
class Standalone:
    """Workers of one core each, with addresses of their own, so that Spark sees several hosts.

    They and their executors have the mark in their environment, the master does not.
    """

    directory: Path
    workers: int = 2
    mark: str = "cluster"
    _port: int = field(default_factory=free_port)
    _running: dict[str, _Process] = field(default_factory=dict)
    """By address; the master is on the first."""
    _closing: threading.Event = field(default_factory=threading.Event)
    _restarter: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"spark://{LOOPBACK}:{self._port}"

    def __enter__(self) -> "Standalone":
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "log4j2.properties").write_text(_LOG)
        self._running[LOOPBACK] = self._start(LOOPBACK)
        wait_until(self._responds, "the master responds", START_TIMEOUT_S)
        for number in range(self.workers):
            host = f"127.0.0.{number + 2}"
            self._running[host] = self._start(host)
        self._restarter = threading.Thread(target=self._restart_dead, name="restarter")
        self._restarter.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing.set()
        if self._restarter is not None:
            self._restarter.join()
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait()

    def _restart_dead(self) -> None:
        while not self._closing.wait(0.2):
            for host, process in self._running.items():
                if process.poll() is not None:
                    self._running[host] = self._start(host)

    def _start(self, host: str) -> _Process:
        log_settings = self.directory / "log4j2.properties"
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{QUICK_TO_START} -Dlog4j.configurationFile={log_settings}",
        }
        if host == LOOPBACK:
            command = ["org.apache.spark.deploy.master.Master", "--port", str(self._port)]
        else:
            work = str(self.directory / f"{host}.work")
            command = ["org.apache.spark.deploy.worker.Worker", self.url, "--work-dir", work]
            command += ["--cores", "1", "--memory", "768m"]
            environment[MARK] = self.mark
        with (self.directory / f"{host}.log").open("ab") as log:
            return subprocess.Popen(
                [_SPARK_CLASS, *command, "--host", host, "--webui-port", "0"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
            )

    def _responds(self) -> bool:
        master_log = self.directory / f"{LOOPBACK}.log"
        assert self._running[LOOPBACK].poll() is None, master_log.read_text()
        with socket.socket() as connection:
            return connection.connect_ex((LOOPBACK, self._port)) == 0
