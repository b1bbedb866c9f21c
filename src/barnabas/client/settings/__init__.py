"""What a client was told, by Java's names or librdkafka's, made typed, checked and complete.

    settings = producer_settings({"bootstrap.servers": "localhost:9092", "linger.ms": 20})
    settings.linger_ms

`names.py` is the table of all names, `resolved.py` what they become, `reading.py` reads one value,
`security.py` is what Java keeps in stores and JAAS lines, `tokens.py` what OAUTHBEARER fetches,
`consistency.py` what must fit together.
"""

from collections.abc import Mapping
from typing import Any

from barnabas.client.settings.model import (
    AdminSettings,
    ConnectionSettings,
    ConsumerSettings,
    ProducerSettings,
    Security,
)

__all__ = [
    "AdminSettings",
    "ConnectionSettings",
    "ConsumerSettings",
    "ProducerSettings",
    "Security",
    "admin_settings",
    "consumer_settings",
    "producer_settings",
]


def producer_settings(conf: Mapping[str, Any]) -> ProducerSettings:
    """KafkaException (_INVALID_ARG) names what is wrong, and what is allowed instead."""
    from barnabas.client.settings import consistency, names
    from barnabas.client.settings.resolver import resolve

    told = resolve(conf, names.PRODUCER, callbacks=names.PRODUCER_CALLBACKS)
    return consistency.adjust_producer(ProducerSettings(**told), told.keys())


def consumer_settings(conf: Mapping[str, Any]) -> ConsumerSettings:
    """As producer_settings(). Without a group.id, `group_id` is None: assign() needs none."""
    from barnabas.client.settings import consistency, names
    from barnabas.client.settings.resolver import resolve

    told = resolve(conf, names.CONSUMER, callbacks=names.CONSUMER_CALLBACKS)
    return consistency.adjust_consumer(ConsumerSettings(**told), told.keys())


def admin_settings(conf: Mapping[str, Any]) -> AdminSettings:
    """As producer_settings()."""
    from barnabas.client.settings import consistency, names
    from barnabas.client.settings.resolver import resolve

    told = resolve(conf, names.ADMIN, callbacks=())
    return consistency.adjust_connection(AdminSettings(**told), told.keys())
