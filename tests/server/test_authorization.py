"""Requests are checked by the authorizer of the node, and the audit log is written."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.security.authorizer.model import CLUSTER, AclOperation, topic_resource
from barnabas.security.authorizer.standard_authorizer import StandardAuthorizer
from barnabas.security.principal import USER, KafkaPrincipal
from barnabas.server.authorization import RequestAuthorizer
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError

READ = AclOperation.READ
ORDERS = topic_resource("orders")


def a_context(*, is_loaded: bool = True, user: str = "alice", **settings: str) -> RequestContext:
    authorizer = StandardAuthorizer()
    authorizer.configure({name.replace("_", "."): text for name, text in settings.items()})
    if is_loaded:
        authorizer.complete_initial_load()
    node = SimpleNamespace(authorizer=RequestAuthorizer(authorizer, lambda: 0))
    connection: Any = SimpleNamespace(host="10.0.0.9", principal=KafkaPrincipal(USER, user))
    return RequestContext(ApiKey.FETCH, 12, 1, "c", connection, node, 0, 0)


def test_a_denial_names_the_request(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="barnabas.authorizer")
    with pytest.raises(KafkaError) as error:
        a_context().require_allowed(READ, ORDERS)
    assert error.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert "User:alice is Denied operation = READ" in caplog.messages[0]
    assert "for request = Fetch" in caplog.messages[0]


def test_a_check_that_others_follow_is_not_audited(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="barnabas.authorizer")
    assert not a_context().is_allowed(READ, ORDERS, is_audited=False)
    assert caplog.messages == []


def test_while_the_acls_are_not_loaded_the_audit_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="barnabas.authorizer")
    context = a_context(is_loaded=False, super_users="User:admin")
    with pytest.raises(KafkaError):
        context.require_allowed(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert "are not loaded yet" in caplog.messages[0]
    assert caplog.messages[0].endswith("add its principal to super.users")
    a_context(is_loaded=False, user="admin", super_users="User:admin").require_allowed(
        AclOperation.CLUSTER_ACTION, CLUSTER
    )


@pytest.mark.parametrize(("user", "operations"), [("admin", 0b1101_1111_1000), ("alice", 0)])
def test_the_operations_of_a_client_are_a_bit_field(user: str, operations: int) -> None:
    context = a_context(user=user, super_users="User:admin")
    assert context.allowed_operations(ORDERS) == operations


def test_without_an_authorizer_all_operations_are_allowed() -> None:
    nothing: Any = None
    node = SimpleNamespace(authorizer=None)
    context = RequestContext(ApiKey.FETCH, 12, 1, "c", nothing, node, 0, 0)
    assert context.allowed_operations(ORDERS) == 3576
    assert context.allowed_operations(CLUSTER) == 8096
    assert context.is_allowed(READ, ORDERS)
