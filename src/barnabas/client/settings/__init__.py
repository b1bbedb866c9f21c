"""The settings of clients, by Java's names or librdkafka's: typed, checked and complete.

    settings = producer_settings({"bootstrap.servers": "localhost:9092", "linger.ms": 20})
    settings.linger_ms

`names.py` is the table of all names, `model.py` has the resulting fields, `parser.py` parses one
value, `security.py` reads Java's stores and JAAS lines, `oauth_tokens.py` fetches tokens for
OAUTHBEARER, `consistency.py` checks settings against each other.
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
    "EXPECTED_SETTINGS",
    "AdminSettings",
    "ConnectionSettings",
    "ConsumerSettings",
    "ProducerSettings",
    "Security",
    "admin_settings",
    "consumer_settings",
    "producer_settings",
]


EXPECTED_SETTINGS = 'expected configuration dict, such as {"bootstrap.servers": "localhost:9092"}'
"""The TypeError of a client that is made without one."""


def producer_settings(conf: Mapping[str, Any]) -> ProducerSettings:
    """Raises KafkaException (_INVALID_ARG) that names the wrong setting and what is allowed."""
    from barnabas.client.settings import consistency, names
    from barnabas.client.settings.resolver import resolve

    fields = resolve(
        conf, names.PRODUCER, callbacks=names.PRODUCER_CALLBACKS, others=names.CONSUMER
    )
    return consistency.adjust_producer(ProducerSettings(**fields), fields.keys())


def consumer_settings(conf: Mapping[str, Any]) -> ConsumerSettings:
    """Like producer_settings(). Without a group.id, `group_id` is None: assign() needs none."""
    from barnabas.client.settings import consistency, names
    from barnabas.client.settings.resolver import resolve

    fields = resolve(
        conf, names.CONSUMER, callbacks=names.CONSUMER_CALLBACKS, others=names.PRODUCER
    )
    return consistency.adjust_consumer(ConsumerSettings(**fields), fields.keys())


def admin_settings(conf: Mapping[str, Any]) -> AdminSettings:
    """Like producer_settings()."""
    from barnabas.client.settings import consistency, names
    from barnabas.client.settings.resolver import resolve

    fields = resolve(conf, names.ADMIN, callbacks=())
    return consistency.adjust_connection(AdminSettings(**fields), fields.keys())
