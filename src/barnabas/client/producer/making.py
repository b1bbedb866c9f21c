"""Makes a producer's parts out of its settings; plain and aio producers are made of the same."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer._partitioners import BY_NAME
from barnabas.client.producer.interception import Interception
from barnabas.client.settings import ProducerSettings


def accumulator(settings: ProducerSettings, wake: Callable[[], object]) -> Accumulator:
    partitioner = settings.partitioner
    if settings.ignore_keys:
        partitioner = "random"
    hashed, frees_missing, frees_empty = (
        BY_NAME[partitioner] if isinstance(partitioner, str) else (None, True, True)
    )
    return Accumulator(
        wake,
        largest_records=settings.buffer_messages,
        largest_bytes=settings.buffer_memory,
        largest_record=settings.max_request_size,
        batch_bytes=min(settings.batch_size, settings.max_request_size),
        batch_records=settings.batch_num_messages,
        linger_s=settings.linger_ms / 1000,
        hashed=hashed,
        frees_missing=frees_missing,
        frees_empty=frees_empty,
        choose=None if isinstance(partitioner, str) else partitioner,
        sticky_ms=settings.sticky_linger_ms,
        is_adaptive=settings.adaptive_partitioning,
        seed=random.getrandbits(63) | 1,
    )


def interception(settings: ProducerSettings) -> Interception | None:
    return Interception(settings.interceptors) if settings.interceptors else None


def merged(conf: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a dictionary and those in keywords, which win."""
    if conf is None and not more:
        raise TypeError("expected configuration dict")
    if conf is not None and not isinstance(conf, Mapping):
        raise TypeError("expected configuration dict")
    return {**(conf or {}), **more}
