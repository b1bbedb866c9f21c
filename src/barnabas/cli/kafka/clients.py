"""Settings and warnings of the producers and consumers of Kafka's commands.

Like Java's clients, they ignore unknown settings and wait for unreachable brokers, and print
warnings to standard error.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from barnabas.cli.operations.console_clients import is_missing
from barnabas.cli.operations.errors import compile_regex
from barnabas.cli.operations.settings import client_settings

if TYPE_CHECKING:
    from barnabas.client.errors import KafkaError

_SERIALIZERS = frozenset(
    f"{part}.{kind}" for part in ("key", "value") for kind in ("serializer", "deserializer")
)
"""Settings that the commands choose themselves."""

_ASSIGNMENT_STRATEGY = "partition.assignment.strategy"
_CONNECT_TIMEOUT_S = 5
_FATAL_ERRORS = frozenset({"_AUTHENTICATION", "_SSL"})
Value = TypeVar("Value")


def java_client_settings(
    file: Path | str | None, pairs: Iterable[str], defaults: Mapping[str, str]
) -> dict[str, Any]:
    """Merges defaults, a file and pairs, without unknown settings."""
    given = client_settings(file, pairs)
    if given.get("group.protocol", "").lower() == "consumer":  # brokers assign partitions
        defaults = {key: defaults[key] for key in defaults if key != _ASSIGNMENT_STRATEGY}
    settings = drop_unknown_settings({**defaults, **given})
    own = {name: value for name, value in settings.items() if name not in _SERIALIZERS}
    return {**own, "error_cb": report_errors()}


def subscription(topic: str | None, include: str | None) -> str:
    """Returns what to subscribe to: the topic, or the topics that match a regular expression."""
    if include is None:
        return topic or ""
    compile_regex(include)
    return f"^{include.lstrip('^')}"


def require_brokers(client: Any) -> None:
    """Raises KafkaException within seconds if no broker is reachable."""
    client.list_topics(timeout=_CONNECT_TIMEOUT_S)


def report_errors() -> "Callable[[KafkaError], None]":
    """Returns an error callback that prints each error, such as `Connection refused`, once.

    A login that fails, or a certificate that is not trusted, is raised: it ends the command.
    """
    from barnabas.client.errors import KafkaException

    seen: set[str] = set()

    def report(error: "KafkaError") -> None:
        if error.name() in _FATAL_ERRORS:
            raise KafkaException(error)
        if error.name() != "_ALL_BROKERS_DOWN" and error.str() not in seen:
            seen.add(error.str())
            print(f"WARN {error.str()}", file=sys.stderr, flush=True)

    return report


class MissingTopicWarning:
    """Warns once if the topic of a client does not exist, as Java's clients do in their logs.

    A consumer calls it when no record arrives, a producer when it sends.
    """

    def __init__(self, client: Any, topic: str | None, consequence: str) -> None:
        """`topic` is None if the client has topics that match a regular expression."""
        self._client = client
        self._topic = topic
        self._consequence = consequence

    def __call__(self) -> None:
        if self._topic is None:
            return
        missing = is_missing(self._client, self._topic)
        if missing:
            print(f"WARN Topic {self._topic} does not exist; {self._consequence}.", file=sys.stderr)
        if missing is not None:
            self._topic = None


CONSUMER_WAITS = "waiting until it is created"
BROKERS_MAY_CREATE = "the brokers create it if auto.create.topics.enable is true"


def warn_of_deprecated(
    args: Namespace, renamed: Mapping[str, str], fail: Callable[[str], NoReturn], warning: str
) -> None:
    """Warns of deprecated options, and fails if both the old and the new option are given.

    `warning` is the text of the command, such as "Option --{} has been deprecated".
    """
    for old, new in renamed.items():
        if not has_value(args, old):
            continue
        if has_value(args, new):
            fail(f"Options --{new} and --{old} cannot be specified together.")
        print(
            f"{warning.format(old)} and will be removed in a future version. Use --{new} instead."
        )


def has_value(args: Namespace, option: str) -> bool:
    """Whether an option such as `producer.config` has a value."""
    return bool(getattr(args, option.replace("-", "_").replace(".", "_")))


def drop_unknown_settings(settings: Mapping[str, Value]) -> dict[str, Value]:
    """Removes settings that no client knows, and prints a warning for each.

    Java's clients do the same: settings files often have settings of other programs.
    """
    from barnabas.client.settings.parser import declarations, unknown_name

    known = {}
    for name, value in settings.items():
        if declarations(name):
            known[name] = value
        else:
            print(f"WARN {unknown_name(name).args[0].str()}", file=sys.stderr)
    return known
