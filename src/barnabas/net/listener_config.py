"""The settings of one listener: `listener.name.<listener>.<name>`, or else `<name>`."""

from collections.abc import Mapping
from typing import Any

from barnabas.config.setting import Secret


class TlsConfigError(Exception):
    """TLS cannot be set up. The message names the setting and says what to do."""


class ListenerConfig:
    """A view of a node's typed settings for one listener."""

    __slots__ = ("_prefix", "_values", "listener")

    def __init__(self, listener: str, values: Mapping[str, Any]) -> None:
        self.listener = listener
        self._prefix = f"listener.name.{listener.lower()}."
        self._values = values

    def __getitem__(self, name: str) -> Any:
        value = self._values[self.full_name(name)]
        return value.reveal() if isinstance(value, Secret) else value

    def own(self, name: str) -> Any | None:
        """Returns the listener's own value only."""
        return self._values.get(self._prefix + name)

    def full_name(self, name: str) -> str:
        """Returns the name under which the setting is set."""
        own_name = self._prefix + name
        return own_name if own_name in self._values else name
