"""What a user asks of the sink, read and checked before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from barnabas.client.errors import KafkaException, error_in
from barnabas.client.settings import producer_settings
from barnabas.columns.format import ColumnFormat
from barnabas.spark.formats import requested_format
from barnabas.spark.options_parser import (
    CLIENT_PREFIX,
    FORMAT_OPTIONS,
    REGISTRY_PREFIX,
    OptionError,
    ParsedOptions,
)

OPTIONS = (
    "topic",
    "deliveryGuarantee",
    "transactionalIdPrefix",
    "txnAppId",
    "txnVersion",
    *FORMAT_OPTIONS,
    f"{REGISTRY_PREFIX}url",
    f"{CLIENT_PREFIX}bootstrap.servers",
)
_HARMLESS = ("path", "checkpointLocation", "queryName", "includeHeaders", "outputMode")
"""Spark's own, and what is said of the connector's writer without effect."""

_DECIDED_HERE = {
    "transactional.id": "set transactionalIdPrefix instead",
    "key.serializer": "keys are written as bytes; see keyFormat",
    "value.serializer": "values are written as bytes; see valueFormat",
}

_DEFAULTS = {
    "batch.size": str(1 << 18),
    "linger.ms": "5",
    "transaction.timeout.ms": "900000",
}
"""Of the producers in tasks. The timeout is the longest that brokers grant if nobody asks them to
grant more: a decided transaction must be committed before it is over."""


class Guarantee(StrEnum):
    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(slots=True, frozen=True)
class SinkOptions:
    conf: Mapping[str, str]
    """The producers' settings."""
    topic: str | None
    guarantee: Guarantee
    id_prefix: str
    application: str | None
    version: int | None
    key: ColumnFormat | None
    value: ColumnFormat | None


def read_options(options: Mapping[str, str]) -> SinkOptions:
    """OptionError says what is wrong."""
    told = ParsedOptions(options, (*OPTIONS, *_HARMLESS), purpose="the barnabas sink")
    application, version = told.text("txnAppId"), _version(told)
    if (application is None) != (version is None):
        raise OptionError("txnAppId and txnVersion belong together: set both or none.")
    guarantee = Guarantee(told.choice("deliveryGuarantee", tuple(Guarantee)))
    return SinkOptions(
        conf=_conf(told, guarantee),
        topic=told.text("topic"),
        guarantee=guarantee,
        id_prefix=told.text("transactionalIdPrefix") or "barnabas-sink",
        application=application,
        version=version,
        key=_format(told, "key"),
        value=_format(told, "value"),
    )


def _conf(told: ParsedOptions, guarantee: Guarantee) -> Mapping[str, str]:
    conf = _DEFAULTS | told.client_settings(_DECIDED_HERE)
    try:
        producer_settings(conf)
    except KafkaException as failure:
        raise OptionError(f"kafka.*: {error_in(failure).str()}") from None
    if guarantee is Guarantee.EXACTLY_ONCE:
        _require_transactions(conf)
    return conf


def _require_transactions(conf: Mapping[str, str]) -> None:
    """What a user of Spark's connector may have set for less than all acknowledgements."""
    try:
        producer_settings({**conf, "transactional.id": "of a task"})
    except KafkaException as failure:
        raise OptionError(
            f"kafka.*: {error_in(failure).str()}. Leave it out, or set deliveryGuarantee to "
            f"{Guarantee.AT_LEAST_ONCE}, which writes without transactions."
        ) from None


def _version(told: ParsedOptions) -> int | None:
    """A number that grows with each batch, from 0 on."""
    return None if told.text("txnVersion") is None else told.integer("txnVersion", 0)


def _format(told: ParsedOptions, column: str) -> ColumnFormat | None:
    asked = requested_format(told, column)
    if asked is None and (told.text(f"{column}Subject") or told.text(f"{column}Schema")):
        raise OptionError(f"{column}Subject and {column}Schema need a {column}Format.")
    return asked
