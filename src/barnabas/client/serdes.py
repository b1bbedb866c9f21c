"""The serializers or deserializers of a client: from its settings, or built for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Serde = Callable[[Any, Any], Any]


@dataclass(slots=True)
class Serdes:
    key: Serde | None
    value: Serde | None
    # Built for this client, and closed with it.
    owned: list[Any]

    @classmethod
    def from_settings(cls, conf: Mapping[str, Any], kind: str) -> tuple[Serdes, dict[str, Any]]:
        """Returns the serdes that `conf` names or has builders for, and the remaining settings.

        Every builder sees all settings; those that a builder consumes do not reach the client.
        """
        remaining = dict(conf)
        serdes = cls(remaining.pop(f"key.{kind}", None), remaining.pop(f"value.{kind}", None), [])
        builders = {
            field: remaining.pop(f"{field}.{kind}.builder", None) for field in ("key", "value")
        }
        whole = dict(remaining)
        with serdes.closed_on_error():
            for field, builder in builders.items():
                if builder is None:
                    continue
                if getattr(serdes, field) is not None:
                    raise ValueError(
                        f"{field}.{kind} and {field}.{kind}.builder are both set: keep one"
                    )
                built, unused = _build(builder, whole, f"{field}.{kind}")
                setattr(serdes, field, built)
                serdes.owned.append(built)
                remaining = {name: value for name, value in remaining.items() if name in unused}
        return serdes, remaining

    @contextlib.contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """Closes the serdes if the construction of their client fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def set_cluster_id_resolver(self, cluster_id: Callable[[], Any]) -> None:
        """Passes the resolver to the serdes that have a method of this name."""
        for serde in (self.key, self.value):
            take = getattr(serde, "set_cluster_id_resolver", None)
            if callable(take):
                take(cluster_id)

    def close(self) -> None:
        """Closes the serdes that were built here: all of them, even if one raises."""
        owned, self.owned = self.owned, []
        with contextlib.ExitStack() as stack:
            for serde in reversed(owned):
                close = getattr(serde, "close", None)
                if callable(close):
                    stack.callback(close)


def apply_serde(
    serde: Serde | None, value: Any, context: Any, wrap: Callable[[Exception], Exception]
) -> Any:
    """Applies a serde to a value, if there is one; `wrap` wraps what the serde raises."""
    if serde is None:
        return value
    try:
        return serde(value, context)
    except Exception as error:
        raise wrap(error) from error


def _build(builder: Any, conf: dict[str, Any], name: str) -> tuple[Any, dict[str, Any]]:
    result = builder.build(dict(conf), name.startswith("key."))
    match result:
        case (serde, dict(unused)):
            return serde, unused
    raise ValueError(
        f"build() of {name}.builder must return a serializer and the dict of the remaining "
        f"settings, not {type(result).__name__}"
    )
