"""Settings of admin clients."""

from barnabas.config.checks import ListOf, at_least, between
from barnabas.config.client import common, security
from barnabas.config.setting import (
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MAX_INT,
    MEDIUM,
    STRING,
    Setting,
    declare,
)

_OWN = declare(
    Setting("bootstrap.controllers", LIST, (), HIGH, ListOf(may_be_empty=True)),
    Setting("bootstrap.servers", LIST, (), HIGH, ListOf(may_be_empty=True)),
    Setting("client.id", STRING, "", MEDIUM),
    Setting("connections.max.idle.ms", LONG, 300_000, MEDIUM),
    Setting("default.api.timeout.ms", INT, 60_000, MEDIUM, at_least(0)),
    Setting("enable.metrics.push", BOOLEAN, False, LOW),
    Setting("receive.buffer.bytes", INT, 65_536, MEDIUM, at_least(-1)),
    Setting("retries", INT, MAX_INT, LOW, between(0, MAX_INT)),
)

SETTINGS = common.SETTINGS | security.SETTINGS | _OWN
