"""Runs `barnabas` commands in the process of the test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.client.expected_errors import TIMEOUTS_S

from barnabas.cli.root_command import barnabas as main
from barnabas.node.format import single_node_properties

Barnabas = Callable[..., Result]

CONNECT_TIMEOUTS = (
    "barnabas.cli.options.CONNECT_TIMEOUT_S",
    "barnabas.cli.kafka.clients._CONNECT_TIMEOUT_S",
)
"""How long commands try to reach a broker."""

RetryQuickly = Callable[[Callable[[], Any]], Any]


@pytest.fixture(autouse=True)
def _long_connect_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives a running broker enough time on a busy machine."""
    for name in CONNECT_TIMEOUTS:
        monkeypatch.setattr(name, 60.0)


@pytest.fixture
def retry_quickly(monkeypatch: pytest.MonkeyPatch) -> RetryQuickly:
    """Runs a command with short connect timeouts until it reports the refused connection."""

    def call(command: Callable[[], Any]) -> Any:
        for connect_timeout_s in TIMEOUTS_S:
            for name in CONNECT_TIMEOUTS:
                monkeypatch.setattr(name, connect_timeout_s)
            result = command()
            if "Connection refused" in getattr(result, "output", str(result)):
                break
        return result

    return call


@pytest.fixture
def barnabas() -> Barnabas:
    """Runs a command; an exception other than SystemExit fails the test."""

    def call(*arguments: str | Path) -> Result:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    return call


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    """The server.properties of a node whose two log directories do not exist yet."""
    settings = single_node_properties("127.0.0.1", 0, tmp_path / "one")
    settings["log.dirs"] = f"{tmp_path}/one,{tmp_path}/two"
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return file
