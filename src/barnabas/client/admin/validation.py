"""Checks of arguments, made when an admin call is called and not when it is awaited."""

from barnabas.client.values import TopicPartition

UNSET = -1.0
"""The default of every timeout: `default.api.timeout.ms` of the client applies."""

_MAX_TIMEOUT_S = 3600.0


def require_list(name: str, items: object, kind: type, *, filled: bool = True) -> None:
    """Raises TypeError unless it is a list of that type, ValueError if it must not be empty."""
    if not isinstance(items, list):
        raise TypeError(f"{name} must be a list of {kind.__name__}, not {type(items).__name__}")
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(f"{name} must hold {kind.__name__}, not {type(item).__name__}")
    if filled and not items:
        raise ValueError(f"{name} must hold at least one {kind.__name__}")


def require_partitions(name: str, partitions: object, *, filled: bool = True) -> None:
    """Checks a list of partitions, which must have a topic and must not be negative."""
    require_list(name, partitions, TopicPartition, filled=filled)
    assert isinstance(partitions, list)
    for partition in partitions:
        if not partition.topic or partition.partition < 0:
            raise ValueError(f"{partition!r} needs a topic and a partition that is not negative")


def timeout_ms(name: str, timeout_s: float, default_ms: int) -> int:
    """Returns a timeout in milliseconds. Raises ValueError if it is out of range."""
    if timeout_s == UNSET:
        return default_ms
    if not 0 <= timeout_s <= _MAX_TIMEOUT_S:
        raise ValueError(f"{name} must be from 0 to {_MAX_TIMEOUT_S:.0f} seconds, not {timeout_s}")
    return round(timeout_s * 1000)
