"""Errors of settings: an invalid setting, or all problems of a file."""

from __future__ import annotations

from collections.abc import Sequence


class InvalidConfig(ValueError):  # noqa: N818 (the protocol's own name for it)
    """A setting is unknown, cannot be changed, or has a value that is not allowed."""


class InvalidConfigRequest(InvalidConfig):
    """An invalid setting for which Kafka responds INVALID_REQUEST, not INVALID_CONFIG."""


class ConfigError(ValueError):
    """A node cannot start with these settings. `problems` has one line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))
