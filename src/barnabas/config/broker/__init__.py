"""All settings of brokers and controllers; each module declares those of one subject."""

from __future__ import annotations

from barnabas.config.broker import (
    groups,
    network,
    node,
    replication,
    security,
    storage,
    tiered,
    transactions,
)
from barnabas.config.checks import at_least
from barnabas.config.setting import CLUSTER, LONG, MAX_LONG, MEDIUM, Setting, declare

SETTINGS = (
    node.SETTINGS
    | network.SETTINGS
    | storage.SETTINGS
    | replication.SETTINGS
    | groups.SETTINGS
    | transactions.SETTINGS
    | tiered.SETTINGS
    | security.SETTINGS
)

# Throttles are dynamic settings only; a file cannot have them.
DYNAMIC_ONLY = declare(
    Setting(
        "follower.replication.throttled.rate", LONG, MAX_LONG, MEDIUM, at_least(0), update=CLUSTER
    ),
    Setting(
        "leader.replication.throttled.rate", LONG, MAX_LONG, MEDIUM, at_least(0), update=CLUSTER
    ),
    Setting(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        MAX_LONG,
        MEDIUM,
        at_least(0),
        update=CLUSTER,
    ),
)

# Settings that can have a SASL mechanism between the listener prefix and their name.
PER_MECHANISM = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)

# Settings that can change at run time only with a listener's prefix.
PER_LISTENER_ONLY = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)

_LISTENER_PREFIX = "listener.name."
_PER_MECHANISM_PREFIX = "sasl.oauthbearer."
# Read by authorizers and plug-ins, not by the broker itself.
_PLUGIN_NAMES = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
_PLUGIN_PREFIXES = ("config.providers.", "rlmm.config.", "rsm.config.")


def find(name: str) -> Setting | None:
    """Returns the declaration of `name`, also with a listener's (and mechanism's) prefix."""
    return SETTINGS.get(name) or DYNAMIC_ONLY.get(name) or SETTINGS.get(base_name(name))


def base_name(name: str) -> str:
    """Removes the prefix of `listener.name.<listener>.[<mechanism>.]<base>`, if there is one."""
    if not name.startswith(_LISTENER_PREFIX):
        return name
    base = name[len(_LISTENER_PREFIX) :].partition(".")[2]
    for per_mechanism in PER_MECHANISM:
        if base.endswith(per_mechanism):
            return per_mechanism
    mechanism, prefix, rest = base.partition(_PER_MECHANISM_PREFIX)
    return prefix + rest if prefix and mechanism.endswith(".") else base


def is_plugin_setting(name: str) -> bool:
    return name in _PLUGIN_NAMES or name.startswith(_PLUGIN_PREFIXES)
