"""The commands in this process, for what ends by itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.client.patience import TIMES_S

from barnabas.cli.root_command import barnabas as main
from barnabas.node.single_node import single_node_properties

Barnabas = Callable[..., Result]

PATIENCE = (
    "barnabas.cli.options.CONNECT_TIMEOUT_S",
    "barnabas.cli.clients.CONNECT_TIMEOUT_S",
    "barnabas.cli.kafka.clients._CONNECT_TIMEOUT_S",
)
"""How long commands look for a broker."""

Hurried = Callable[[Callable[[], Any]], Any]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no reason to give up a broker that is there."""
    for name in PATIENCE:
        monkeypatch.setattr(name, 60.0)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Hurried:
    """Calls what has to find out that nobody is there; it may find out later than at once."""

    def call(command: Callable[[], Any]) -> Any:
        for connect_timeout_s in TIMES_S:
            for name in PATIENCE:
                monkeypatch.setattr(name, connect_timeout_s)
            result = command()
            if "Connection refused" in getattr(result, "output", str(result)):
                break
        return result

    return call


@pytest.fixture
def barnabas() -> Barnabas:
    """Calls a command; whatever goes wrong must have been told in words."""

    def call(*arguments: str | Path) -> Result:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    return call


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    """The server.properties of a node whose two directories are not there yet."""
    settings = single_node_properties("127.0.0.1", 0, tmp_path / "one")
    settings["log.dirs"] = f"{tmp_path}/one,{tmp_path}/two"
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return file
