"""Checks the names of settings that a test gives: a misspelt one would change nothing."""

from collections.abc import Iterable

from barnabas.config import broker, topic
from barnabas.config.unknown_names import suggestion
from barnabas.testing.requests import BrokerError


def require_broker_settings(names: Iterable[str]) -> None:
    """Raises BrokerError for a name that is not one of server.properties."""
    for name in names:
        if broker.find(name) is None and not broker.is_plugin_setting(name):
            hint = suggestion(name, broker.SETTINGS)
            raise BrokerError(f"{name} is not a setting of a broker{hint}")


def require_topic_configs(names: Iterable[str]) -> None:
    """Raises BrokerError for a name that is not a config of a topic."""
    for name in names:
        if name not in topic.SETTINGS:
            raise BrokerError(
                f"{name} is not a config of a topic{suggestion(name, topic.SETTINGS)}"
            )
