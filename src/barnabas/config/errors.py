"""What can be wrong with settings: one of them, or a whole file of them."""

from __future__ import annotations

from collections.abc import Sequence


class InvalidConfig(ValueError):  # noqa: N818 (the protocol's own name for it)
    """A setting is unknown, may not be changed here, or has a value that is not allowed."""


class InvalidConfigRequest(InvalidConfig):
    """The same where Kafka blames the request: it answers INVALID_REQUEST, not INVALID_CONFIG."""


class ConfigError(ValueError):
    """A node cannot start with these settings. `problems` has one line for each thing to mend."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))
