"""The audit log has one line a minute for the same denial."""

import logging

import pytest

from barnabas.security.authorizer import audit_log
from barnabas.security.authorizer.audit_log import AccessCheck, AuditLog
from barnabas.security.authorizer.model import (
    CLUSTER,
    AclOperation,
    Resource,
    ResourceType,
    topic_resource,
)
from barnabas.security.principal import USER, KafkaPrincipal


class Clock:
    now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def audit(clock: Clock, caplog: pytest.LogCaptureFixture) -> AuditLog:
    caplog.set_level(logging.INFO, logger="barnabas.authorizer")
    return AuditLog(clock)


ORDERS = topic_resource("orders")


def a_check(
    resource: Resource = ORDERS,
    operation: AclOperation = AclOperation.READ,
    user: str = "alice",
) -> AccessCheck:
    return AccessCheck(KafkaPrincipal(USER, user), "10.0.0.9", operation, resource, "Fetch")


def deny(audit: AuditLog, check: AccessCheck) -> None:
    audit.on_denied(check, lambda: "DefaultDeny")


def test_a_denial_is_logged_in_kafkas_words(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    deny(audit, a_check())
    assert caplog.messages == [
        "Principal = User:alice is Denied operation = READ from host = 10.0.0.9 on resource = "
        "Topic:LITERAL:orders for request = Fetch with resourceRefCount = 1 based on rule "
        "DefaultDeny"
    ]


def test_the_same_denial_is_logged_again_after_a_minute_with_the_number_of_the_others(
    audit: AuditLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        deny(audit, a_check())
    clock.now_ms += 59_999
    deny(audit, a_check())
    assert len(caplog.messages) == 1
    clock.now_ms += 1
    deny(audit, a_check())
    assert caplog.messages[1].endswith("DefaultDeny (3 more since the last line)")


def test_other_principals_operations_and_resources_are_logged(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    for check in (
        a_check(),
        a_check(user="bob"),
        a_check(operation=AclOperation.WRITE),
        a_check(topic_resource("parcels")),
        a_check(Resource(ResourceType.GROUP, "orders")),
    ):
        deny(audit, check)
    assert len(caplog.messages) == 5


def test_a_clock_that_was_set_back_suppresses_nothing(
    audit: AuditLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    deny(audit, a_check())
    clock.now_ms -= 3_600_000
    deny(audit, a_check())
    assert len(caplog.messages) == 2


def test_denials_are_remembered_in_bounded_memory(
    audit: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "MAX_REMEMBERED", 10)
    for number in range(100):
        deny(audit, a_check(topic_resource(f"{number}" * 10_000)))
    assert len(audit._denials) == 10
    assert all(len(name) < 250 for *_, name in audit._denials)


def test_a_client_cannot_write_lines_of_its_own(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    deny(
        audit, a_check(Resource(ResourceType.GROUP, "g\nPrincipal = User:admin is Allowed\x1b[2J"))
    )
    (line,) = caplog.messages
    assert "Group:LITERAL:g\\nPrincipal = User:admin is Allowed\\x1b[2J" in line


def test_what_is_allowed_is_logged_at_debug(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    assert not audit.logs_allowed
    caplog.set_level(logging.DEBUG, logger="barnabas.authorizer")
    assert audit.logs_allowed
    audit.on_allowed(a_check(), lambda: "SuperUser")
    assert "User:alice is Allowed operation = READ" in caplog.messages[0]


def test_the_line_of_a_node_that_is_denied_says_what_to_do(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    deny(audit, a_check(CLUSTER, AclOperation.CLUSTER_ACTION))
    assert caplog.messages[0].endswith("add its principal to super.users")
