"""Builds the parts that plain and asyncio producers share, from the settings."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.client.producer._accumulator import RecordAccumulator
from barnabas.client.producer._partitioners import BY_NAME
from barnabas.client.producer.interceptors import ProducerInterceptors
from barnabas.client.settings import ProducerSettings


def build_accumulator(settings: ProducerSettings, wake: Callable[[], object]) -> RecordAccumulator:
    partitioner = settings.partitioner
    if settings.ignore_keys:
        partitioner = "random"
    hash_key, sticks_null_keys, sticks_empty_keys = (
        BY_NAME[partitioner] if isinstance(partitioner, str) else (None, True, True)
    )
    return RecordAccumulator(
        wake,
        max_records=settings.buffer_messages,
        max_bytes=settings.buffer_memory,
        max_record_bytes=settings.max_request_size,
        batch_bytes=min(settings.batch_size, settings.max_request_size),
        batch_records=settings.batch_num_messages,
        linger_s=settings.linger_ms / 1000,
        hash_key=hash_key,
        sticks_null_keys=sticks_null_keys,
        sticks_empty_keys=sticks_empty_keys,
        partitioner=None if isinstance(partitioner, str) else partitioner,
        sticky_ms=settings.sticky_linger_ms,
        is_adaptive=settings.adaptive_partitioning,
        seed=random.getrandbits(63) | 1,
    )


def build_interceptors(settings: ProducerSettings) -> ProducerInterceptors | None:
    return ProducerInterceptors(settings.interceptors) if settings.interceptors else None


def merge_conf(conf: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a dictionary and those of keywords, which take precedence."""
    if conf is None and not more:
        raise TypeError("expected configuration dict")
    if conf is not None and not isinstance(conf, Mapping):
        raise TypeError("expected configuration dict")
    return {**(conf or {}), **more}
