from collections.abc import Callable

import pytest

from barnabas.config import BrokerSettings

NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
}

Configure = Callable[..., BrokerSettings]


@pytest.fixture
def configure() -> Configure:
    """Returns a function that changes the settings of a valid node; None removes a setting."""

    def build(changes: dict[str, str | None] | None = None) -> BrokerSettings:
        properties: dict[str, str | None] = {**NODE, **(changes or {})}
        return BrokerSettings.from_properties(
            {name: text for name, text in properties.items() if text is not None}
        )

    return build
