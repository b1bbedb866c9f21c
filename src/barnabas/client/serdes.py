"""The pair of serializers, or deserializers, of one client: found in its settings, or built."""

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
    # What was built for this client, and is closed with it.
    owned: list[Any]

    @classmethod
    def from_settings(cls, conf: Mapping[str, Any], kind: str) -> tuple[Serdes, dict[str, Any]]:
        """Those that `conf` names or has builders for, and what is left of it for the client.

        Every builder sees all of it; what any of them took does not reach the client.
        """
        left = dict(conf)
        serdes = cls(left.pop(f"key.{kind}", None), left.pop(f"value.{kind}", None), [])
        builders = {field: left.pop(f"{field}.{kind}.builder", None) for field in ("key", "value")}
        whole = dict(left)
        with serdes.closed_on_error():
            for field, builder in builders.items():
                if builder is None:
                    continue
                if getattr(serdes, field) is not None:
                    raise ValueError(
                        f"{field}.{kind} and {field}.{kind}.builder are both given: keep one"
                    )
                built, unused = _built(builder, whole, f"{field}.{kind}")
                setattr(serdes, field, built)
                serdes.owned.append(built)
                left = {name: value for name, value in left.items() if name in unused}
        return serdes, left

    @contextlib.contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """While the client is being made: if that fails, nobody else will close them."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def set_cluster_id_resolver(self, cluster_id: Callable[[], Any]) -> None:
        """Tell those who want to know how to learn the cluster's id."""
        for serde in (self.key, self.value):
            take = getattr(serde, "set_cluster_id_resolver", None)
            if callable(take):
                take(cluster_id)

    def close(self) -> None:
        """Close what was built here: all of it, even if one raises."""
        owned, self.owned = self.owned, []
        with contextlib.ExitStack() as stack:
            for serde in reversed(owned):
                close = getattr(serde, "close", None)
                if callable(close):
                    stack.callback(close)


def apply_serde(
    serde: Serde | None, it: Any, context: Any, failed: Callable[[Exception], Exception]
) -> Any:
    """What a serializer makes of it, or itself if there is none; `failed` names what it raises."""
    if serde is None:
        return it
    try:
        return serde(it, context)
    except Exception as problem:
        raise failed(problem) from problem


def _built(builder: Any, conf: dict[str, Any], name: str) -> tuple[Any, dict[str, Any]]:
    result = builder.build(dict(conf), name.startswith("key."))
    match result:
        case (serde, dict(unused)):
            return serde, unused
    raise ValueError(
        f"build() of {name}.builder must return a serializer and the dict of settings that are "
        f"left, not {type(result).__name__}"
    )
