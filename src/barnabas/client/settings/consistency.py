"""Checks settings against each other, and adjusts defaults to explicit values.

Java and librdkafka reject different combinations. What either of them accepts is accepted here: a
default changes where an explicit value requires it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from barnabas.client.errors import KafkaError, fail
from barnabas.client.settings.model import (
    ConnectionSettings,
    ConsumerSettings,
    ProducerSettings,
)

MAX_IN_FLIGHT_WITH_ORDER = 5

Settings = TypeVar("Settings", bound=ConnectionSettings)


def adjust_connection(settings: Settings, explicit: Collection[str]) -> Settings:
    for kind in ("retry", "reconnect"):
        first, most = f"{kind}_backoff_ms", f"{kind}_backoff_max_ms"
        if getattr(settings, first) > getattr(settings, most):
            adjusted, kept = (first, most) if most in explicit else (most, first)
            settings = replace(settings, **{adjusted: getattr(settings, kept)})
    return settings


def adjust_producer(settings: ProducerSettings, explicit: Collection[str]) -> ProducerSettings:
    settings = _adjust_idempotence(adjust_connection(settings, explicit), explicit)
    if settings.transactional_id and "delivery_timeout_ms" not in explicit:
        settings = replace(
            settings,
            delivery_timeout_ms=min(settings.delivery_timeout_ms, settings.transaction_timeout_ms),
        )
    if settings.linger_ms >= settings.delivery_timeout_ms:
        if "linger_ms" in explicit:
            _reject("delivery.timeout.ms", "more than", "linger.ms")
        settings = replace(settings, linger_ms=settings.delivery_timeout_ms / 2)
    return settings


def adjust_consumer(settings: ConsumerSettings, explicit: Collection[str]) -> ConsumerSettings:
    settings = _adjust_response_size(adjust_connection(settings, explicit), explicit)
    if settings.group_protocol == "consumer":
        _reject_broker_settings(explicit)
        return settings
    if settings.max_poll_interval_ms < settings.session_timeout_ms:
        if "session_timeout_ms" in explicit:
            _reject("max.poll.interval.ms", "at least", "session.timeout.ms")
        settings = replace(settings, session_timeout_ms=settings.max_poll_interval_ms)
    if settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        if "heartbeat_interval_ms" in explicit and "session_timeout_ms" in explicit:
            _reject("heartbeat.interval.ms", "less than", "session.timeout.ms")
        if "heartbeat_interval_ms" in explicit:
            longer_ms = settings.heartbeat_interval_ms * 3
            settings = replace(settings, session_timeout_ms=longer_ms)
        else:
            sooner_ms = max(1, settings.session_timeout_ms // 3)
            settings = replace(settings, heartbeat_interval_ms=sooner_ms)
    return settings


def _adjust_idempotence(settings: ProducerSettings, explicit: Collection[str]) -> ProducerSettings:
    """Disables idempotence by default where explicit settings exclude it, as in Java."""
    obstacles = [
        (settings.acks != -1, 'needs "acks" to be all'),
        (
            settings.max_in_flight > MAX_IN_FLIGHT_WITH_ORDER,
            f'needs "max.in.flight.requests.per.connection" to be at most '
            f"{MAX_IN_FLIGHT_WITH_ORDER}",
        ),
        (settings.retries == 0, 'needs "retries" to be at least 1'),
    ]
    needs = [need for is_obstacle, need in obstacles if is_obstacle]
    setting = '"transactional.id"' if settings.transactional_id else '"enable.idempotence"'
    if settings.transactional_id and not settings.enable_idempotence:
        fail(KafkaError._INVALID_ARG, '"transactional.id" needs "enable.idempotence" to be true')
    if not settings.enable_idempotence or not needs:
        return settings
    if settings.transactional_id or "enable_idempotence" in explicit:
        fail(KafkaError._INVALID_ARG, f"{setting} {needs[0]}")
    return replace(settings, enable_idempotence=False)


def _adjust_response_size(
    settings: ConsumerSettings, explicit: Collection[str]
) -> ConsumerSettings:
    needed = settings.fetch_max_bytes + 512
    if settings.max_response_bytes >= needed:
        return settings
    if "max_response_bytes" not in explicit:
        return replace(settings, max_response_bytes=needed)
    if "fetch_max_bytes" in explicit:
        _reject("receive.message.max.bytes", "at least 512 more than", "fetch.max.bytes")
    return replace(settings, fetch_max_bytes=settings.max_response_bytes - 512)


def _reject_broker_settings(explicit: Collection[str]) -> None:
    for field, name, instead in (
        ("session_timeout_ms", "session.timeout.ms", "the group's consumer.session.timeout.ms"),
        (
            "heartbeat_interval_ms",
            "heartbeat.interval.ms",
            "the group's consumer.heartbeat.interval.ms",
        ),
        ("assignors", "partition.assignment.strategy", "group.remote.assignor"),
    ):
        if field in explicit:
            fail(
                KafkaError._INVALID_ARG,
                f'"{name}" is not for "group.protocol" consumer, where brokers decide: '
                f"set {instead} instead",
            )


def _reject(name: str, relation: str, other: str) -> None:
    fail(KafkaError._INVALID_ARG, f'"{name}" must be {relation} "{other}"')
