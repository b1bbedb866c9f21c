"""The commands in this process, for what ends by itself."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.cli.subcommands import barnabas as main
from barnabas.node.alone import single_node_properties

Barnabas = Callable[..., Result]


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
