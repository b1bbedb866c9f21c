"""The options of the sink, parsed and checked before anything is written."""

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
_IGNORED_OPTIONS = ("path", "checkpointLocation", "queryName", "includeHeaders", "outputMode")
"""Spark's own options, and options of Spark's Kafka connector that have no effect here."""

_REJECTED_SETTINGS = {
    "transactional.id": "set transactionalIdPrefix instead",
    "key.serializer": "keys are written as bytes; see keyFormat",
    "value.serializer": "values are written as bytes; see valueFormat",
}

_DEFAULTS = {
    "batch.size": str(1 << 18),
    "linger.ms": "5",
    "transaction.timeout.ms": "900000",
}
"""Settings of the producers in tasks. The timeout is the longest that brokers allow by default: a
transaction of a decision must be committed before it times out."""


class Guarantee(StrEnum):
    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(slots=True, frozen=True)
class SinkOptions:
    conf: Mapping[str, str]
    """The settings of the producers."""
    topic: str | None
    guarantee: Guarantee
    id_prefix: str
    application: str | None
    version: int | None
    key: ColumnFormat | None
    value: ColumnFormat | None


def read_options(options: Mapping[str, str]) -> SinkOptions:
    """Raises OptionError if an option is unknown, missing or invalid."""
    parsed = ParsedOptions(options, (*OPTIONS, *_IGNORED_OPTIONS), purpose="the barnabas sink")
    application, version = parsed.text("txnAppId"), _version(parsed)
    if (application is None) != (version is None):
        raise OptionError("txnAppId and txnVersion belong together: set both or none.")
    guarantee = Guarantee(parsed.choice("deliveryGuarantee", tuple(Guarantee)))
    return SinkOptions(
        conf=_conf(parsed, guarantee),
        topic=parsed.text("topic"),
        guarantee=guarantee,
        id_prefix=parsed.text("transactionalIdPrefix") or "barnabas-sink",
        application=application,
        version=version,
        key=_format(parsed, "key"),
        value=_format(parsed, "value"),
    )


def _conf(parsed: ParsedOptions, guarantee: Guarantee) -> Mapping[str, str]:
    conf = _DEFAULTS | parsed.client_settings(_REJECTED_SETTINGS)
    try:
        producer_settings(conf)
    except KafkaException as error:
        raise OptionError(f"kafka.*: {error_in(error).str()}") from None
    if guarantee is Guarantee.EXACTLY_ONCE:
        _require_transactions(conf)
    return conf


def _require_transactions(conf: Mapping[str, str]) -> None:
    """Raises OptionError for settings that transactions do not allow, such as acks=1."""
    try:
        producer_settings({**conf, "transactional.id": "of a task"})
    except KafkaException as error:
        raise OptionError(
            f"kafka.*: {error_in(error).str()}. Leave it out, or set deliveryGuarantee to "
            f"{Guarantee.AT_LEAST_ONCE}, which writes without transactions."
        ) from None


def _version(parsed: ParsedOptions) -> int | None:
    """Returns the version, which starts at 0 and increases with each batch."""
    return None if parsed.text("txnVersion") is None else parsed.integer("txnVersion", 0)


def _format(parsed: ParsedOptions, column: str) -> ColumnFormat | None:
    format_ = requested_format(parsed, column)
    if format_ is None and (parsed.text(f"{column}Subject") or parsed.text(f"{column}Schema")):
        raise OptionError(f"{column}Subject and {column}Schema need a {column}Format.")
    return format_
