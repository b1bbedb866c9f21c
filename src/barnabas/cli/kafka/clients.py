"""The producers and consumers of these commands: how they are set up, and what they say meanwhile.

Java's clients pass over settings that they do not know, and wait for brokers that are not there.
So do these, and both is told on standard error.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from barnabas.cli.operations.settings import client_settings

if TYPE_CHECKING:
    from barnabas.client.errors import KafkaError

_SERIALIZERS = frozenset(
    f"{part}.{kind}" for part in ("key", "value") for kind in ("serializer", "deserializer")
)
"""Which these commands choose themselves, whatever a file says."""

_REACH_S = 5


def java_client_settings(
    file: Path | str | None, pairs: Iterable[str], defaults: Mapping[str, str]
) -> dict[str, Any]:
    """Of a client: the defaults, what the file says, and what the pairs say."""
    settings = drop_unknown_settings(client_settings(file, pairs, defaults))
    kept_settings = {name: value for name, value in settings.items() if name not in _SERIALIZERS}
    return {**kept_settings, "error_cb": warn_once()}


def require_brokers(client: Any) -> None:
    """Fail within seconds, with the address and the reason, where nobody is: there is nothing to
    measure then.
    """
    client.list_topics(timeout=_REACH_S)


def warn_once() -> "Callable[[KafkaError], None]":
    """Tells each trouble on the way to the brokers, such as `localhost:9092: Connection refused`,
    when it is met for the first time.
    """
    seen: set[str] = set()

    def warn(error: "KafkaError") -> None:
        if error.name() != "_ALL_BROKERS_DOWN" and error.str() not in seen:
            seen.add(error.str())
            print(f"WARN {error.str()}", file=sys.stderr, flush=True)

    return warn


def warn_of_deprecated(
    args: Namespace,
    renamed: Mapping[str, str],
    fail: Callable[[str], NoReturn],
    warning: str,
) -> None:
    """Which of the given options have another name by now; one of both names is enough.

    `told` is how this command says it, as in "Option --{} has been deprecated".
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
    """Whether an option with a value, such as `producer.config`, was given."""
    return bool(getattr(args, option.replace("-", "_").replace(".", "_")))


Value = TypeVar("Value")


def drop_unknown_settings(settings: Mapping[str, Value]) -> dict[str, Value]:
    """Those that a client takes; of each of the others a line on standard error."""
    from barnabas.client.settings.parser import declarations, unknown_name

    known_settings = {}
    for name, value in settings.items():
        if declarations(name):
            known_settings[name] = value
        else:
            print(f"WARN {unknown_name(name).args[0].str()}", file=sys.stderr)
    return known_settings
