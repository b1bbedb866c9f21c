"""The Connect worker that the pages on Connect say is running."""

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.documents.pages import Fence, fences, run_in_shell
from tests.wait import wait_until

from barnabas.testing import Broker
from barnabas.testing.ports import free_port

START_TIMEOUT_S = 90.0


@contextmanager
def servers(directory: Path, *settings: str) -> Iterator[dict[str, str]]:
    """Starts a broker and `barnabas connect start`; returns their addresses by those on pages."""
    port = free_port()
    with Broker() as broker, (directory / "worker.log").open("wb") as log:
        worker = subprocess.Popen(
            [
                *(sys.executable, "-m", "barnabas.cli", "connect", "start"),
                *("--port", str(port), "--stop-with-stdin", "-b", broker.bootstrap_servers),
                *(word for setting in settings for word in ("--set", setting)),
            ],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        try:
            url = f"http://localhost:{port}"
            wait_until(
                lambda: is_healthy(url) or worker.poll() is not None,
                f"{url} is healthy",
                START_TIMEOUT_S,
                poll_s=0.1,
            )
            assert worker.poll() is None, (directory / "worker.log").read_text()
            yield {
                "localhost:9092": broker.bootstrap_servers,
                "localhost:8083": f"localhost:{port}",
            }
        finally:
            assert worker.stdin is not None
            worker.stdin.close()
            worker.wait(60)


def is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def scripts(page: Path) -> list[tuple[Fence, str | None]]:
    """Returns the `sh` fences of a page, each with the `text` fence that follows it at once."""
    on_page, text = fences(page), page.read_text()
    found = []
    for fence, following in zip(on_page, [*on_page[1:], None], strict=True):
        if fence.language != "sh":
            continue
        is_output = following is not None and following.language == "text"
        is_next = is_output and f"```\n\n```text\n{following.text}" in text.split(fence.text, 1)[1]
        found.append((fence, following.text if is_next and following is not None else None))
    return found


def run_all(
    page: Path, directory: Path, addresses: Mapping[str, str]
) -> Sequence[tuple[Fence, str | None, subprocess.CompletedProcess[str]]]:
    """Runs the scripts of a page one after another in one directory, until one fails."""
    results = []
    for fence, output in scripts(page):
        done = run_in_shell(fence.text, directory, addresses)
        results.append((fence, output, done))
        if done.returncode:
            break
    return results


def pattern(output: str) -> str:
    """Returns the expression for an output in which `...` leaves something out."""
    lines = (re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in output.splitlines())
    return "".join(r"(?:.*\n)*" if line == r".*\n" else line for line in lines)
