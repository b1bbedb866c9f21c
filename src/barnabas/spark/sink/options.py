"""What a user asks of the sink, read and checked before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from barnabas.client.errors import KafkaException, error_in
from barnabas.client.settings import producer_settings
from barnabas.spark.naming import PASSED_ON, REGISTRY, OptionError, require_known

_OWN = (
    "topic",
    "deliveryGuarantee",
    "transactionalIdPrefix",
    "txnAppId",
    "txnVersion",
    "keyFormat",
    "valueFormat",
    "keySubject",
    "valueSubject",
    "keySchema",
    "valueSchema",
    "schema.registry.url",
    "kafka.bootstrap.servers",
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
class Format:
    """How a column's values become bytes, as far as options say."""

    name: str
    subject: str | None
    schema: str | None


@dataclass(slots=True, frozen=True)
class SinkOptions:
    conf: Mapping[str, str]
    """The producers' settings."""
    topic: str | None
    guarantee: Guarantee
    id_prefix: str
    application: str | None
    version: int | None
    key: Format | None
    value: Format | None
    registry: Mapping[str, str]


def read_options(options: Mapping[str, str]) -> SinkOptions:
    """OptionError says what is wrong."""
    given = {name.lower(): str(value) for name, value in options.items()}
    require_known(given, (*_OWN, *_HARMLESS), purpose="the barnabas sink")
    application, version = given.get("txnappid"), _version(given.get("txnversion"))
    if (application is None) != (version is None):
        raise OptionError("txnAppId and txnVersion belong together: set both or none.")
    guarantee = _guarantee(given.get("deliveryguarantee", Guarantee.EXACTLY_ONCE))
    return SinkOptions(
        conf=_conf(given, guarantee),
        topic=given.get("topic"),
        guarantee=guarantee,
        id_prefix=given.get("transactionalidprefix", "barnabas-sink"),
        application=application,
        version=version,
        key=_format(given, "key"),
        value=_format(given, "value"),
        registry={name: value for name, value in given.items() if name.startswith(REGISTRY)},
    )


def _conf(given: Mapping[str, str], guarantee: Guarantee) -> Mapping[str, str]:
    told = {
        name.removeprefix(PASSED_ON): value
        for name, value in given.items()
        if name.startswith(PASSED_ON)
    }
    if not told.get("bootstrap.servers"):
        raise OptionError("The option kafka.bootstrap.servers is missing: host:port,host:port,...")
    for name, instead in _DECIDED_HERE.items():
        if name in told:
            raise OptionError(f"kafka.{name} cannot be set: {instead}.")
    conf = {**_DEFAULTS, **told}
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


def _guarantee(text: str) -> Guarantee:
    try:
        return Guarantee(text.lower())
    except ValueError:
        allowed = " or ".join(Guarantee)
        raise OptionError(f"deliveryGuarantee is {allowed}, not {text!r}.") from None


def _version(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise OptionError(f"txnVersion is a number that grows, from 0 on, not {text!r}.")
    return int(text)


def _format(given: Mapping[str, str], column: str) -> Format | None:
    name = given.get(f"{column}format")
    subject, schema = given.get(f"{column}subject"), given.get(f"{column}schema")
    if name is None:
        if subject is not None or schema is not None:
            raise OptionError(f"{column}Subject and {column}Schema need a {column}Format.")
        return None
    return Format(name.lower(), subject, schema)
