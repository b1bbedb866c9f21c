"""The pages, the fences on them, and a user's shell to run them in.

A `python`, `sh` or `properties` fence is complete: it is run as printed, alone, on a fresh broker.
Other fences are output, and fragments are indented text.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
TIMEOUT_S = 280


@dataclass(slots=True, frozen=True)
class Fence:
    page: Path
    number: int
    language: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.page.relative_to(ROOT)}-{self.number}"


def fences(page: Path) -> list[Fence]:
    """Returns the fences of a page in order."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.M | re.S)
    return [Fence(page, number, *each) for number, each in enumerate(found)]


def programs(page: Path, language: str = "python") -> list[Fence]:
    """Returns the fences of a page in that language."""
    return [fence for fence in fences(page) if fence.language == language]


def printed(program: str) -> list[str]:
    """Returns what the comments of a Python program say that it prints."""
    return re.findall(r"^print\(.*\)  # (.*)$", program, re.M)


def with_addresses(text: str, addresses: Mapping[str, str]) -> str:
    """Returns the text with the addresses of running servers in place of those on the pages."""
    for written, real in addresses.items():
        text = text.replace(written, real)
    return text


def run_in_shell(
    script: str, directory: Path, addresses: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a script in a directory, with `barnabas` and `python` on the PATH."""
    commands = directory / ".venv" / "bin"
    commands.mkdir(parents=True, exist_ok=True)
    _add_command(commands / "python", f'exec {sys.executable} "$@"')
    _add_command(commands / "barnabas", f'exec {sys.executable} -m barnabas.cli "$@"')
    (commands / "activate").write_text(f"PATH={commands}:$PATH\n")
    return subprocess.run(
        ["sh", "-e", "-c", with_addresses(script, addresses)],
        cwd=directory,
        env={
            **os.environ,
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "BARNABAS_BOOTSTRAP_SERVER": addresses["localhost:9092"],
            "BARNABAS_CONNECT": f"http://{addresses.get('localhost:8083', 'localhost:8083')}",
        },
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def _add_command(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
