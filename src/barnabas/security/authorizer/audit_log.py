"""The audit log: what was denied, and at level DEBUG what was allowed, in Kafka's words.

A client that is denied retries, often many times a second. The same denial is logged once a
minute; the next line has the number of those that were suppressed.
"""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.security.authorizer.model import AclOperation, Resource, ResourceType
from barnabas.security.principal import KafkaPrincipal

log = logging.getLogger("barnabas.authorizer")

INTERVAL_MS: Final = 60_000
MAX_REMEMBERED: Final = 4096
"""How many denials are remembered. One that was forgotten is logged again."""

MAX_NAME: Final = 249
MAX_RULE: Final = 1000
"""The longest texts in a line. The rest is cut off."""

_TITLES = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTIONAL_ID: "TransactionalId",
    ResourceType.DELEGATION_TOKEN: "DelegationToken",
    ResourceType.USER: "User",
}


class AccessCheck(NamedTuple):
    """A check of one request."""

    principal: KafkaPrincipal
    host: str
    operation: AclOperation
    resource: Resource
    api_name: str


class _Denial:
    """A denial that was logged, and how often it was repeated since."""

    __slots__ = ("logged_ms", "suppressed")

    def __init__(self, logged_ms: int) -> None:
        self.logged_ms = logged_ms
        self.suppressed = 0


class AuditLog:
    """Logs the decisions of an authorizer."""

    __slots__ = ("_clock", "_denials")

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._denials: dict[tuple[str, AclOperation, ResourceType, str], _Denial] = {}

    @property
    def logs_allowed(self) -> bool:
        return log.isEnabledFor(logging.DEBUG)

    def on_allowed(self, check: AccessCheck, rule: Callable[[], str]) -> None:
        log.debug("%s", _sentence(check, "Allowed", rule()))

    def on_denied(self, check: AccessCheck, rule: Callable[[], str]) -> None:
        now_ms = self._clock()
        resource = check.resource
        key = (_cut(str(check.principal)), check.operation, resource.type, _cut(resource.name))
        denial = self._denials.get(key)
        if denial is not None and 0 <= now_ms - denial.logged_ms < INTERVAL_MS:
            denial.suppressed += 1
            return
        sentence = _sentence(check, "Denied", rule())
        if denial is not None:
            del self._denials[key]  # the newest are last
            if denial.suppressed:
                sentence += f" ({denial.suppressed} more since the last line)"
        elif len(self._denials) >= MAX_REMEMBERED:
            del self._denials[next(iter(self._denials))]
        self._denials[key] = _Denial(now_ms)
        if check.operation is AclOperation.CLUSTER_ACTION:
            log.warning(
                "%s; if it is a node of this cluster, add its principal to super.users", sentence
            )
        else:
            log.info("%s", sentence)


def _sentence(check: AccessCheck, outcome: str, rule: str) -> str:
    resource = check.resource
    return (
        f"Principal = {_printable(str(check.principal))} is {outcome} operation = "
        f"{check.operation.name} from host = {check.host} on resource = "
        f"{_TITLES[resource.type]}:LITERAL:{_printable(resource.name)} for request = "
        f"{check.api_name} with resourceRefCount = 1 based on rule {_printable(rule, MAX_RULE)}"
    )


def _printable(text: str, length: int = MAX_NAME) -> str:
    """Returns the text on one line: a client must not be able to write lines of its own."""
    shown = text if len(text) <= length else f"{text[:length]}..."
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown
    )


def _cut(text: str) -> str:
    return text[:MAX_NAME]
