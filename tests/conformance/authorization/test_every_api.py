"""Every API checks the permissions of its client, on a broker with ACLs."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.authorization.cases import CAF, CASES, GAF, TAF, XAF, Case, Need
from tests.conformance.authorization.secured import SETTINGS, SecuredBroker
from tests.conformance.brokers import BrokerProcess
from tests.conformance.side_by_side.sides import is_encodable

from barnabas.server.api import HANDLERS
from barnabas.server.handlers import served_versions
from barnabas.wire.apis import ApiKey
from barnabas.wire.schema import Struct

DENIALS = frozenset({TAF, GAF, CAF, XAF})

WITHOUT_CHECKS = {
    ApiKey.API_VERSIONS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}
OF_TOKENS = {
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
}
"""They depend on how the client has logged in: see tests/server/api/test_security_descriptions."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    process = BrokerProcess(tmp_path_factory.mktemp("secured"), settings=SETTINGS)
    process.start()
    secured = SecuredBroker("Barnabas", process)
    try:
        secured.prepare()
        yield secured
    finally:
        secured.close()
        process.stop()


def test_every_api_has_a_case() -> None:
    assert {case.key for case in CASES} == set(HANDLERS) - WITHOUT_CHECKS - OF_TOKENS


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.key.name} {case.variant}")
def test_a_request_needs_its_permissions(case: Case, secured: SecuredBroker) -> None:
    for count, need in enumerate(case.needs):
        secured.grant(*case.needs[:count])
        for version, response in responses(case, secured):
            found = denials(response)
            if need.error is None:
                assert not names(response, need), f"v{version}"
            elif version >= FIRST_VERSION_WITH_ERRORS.get(case.key, 0):
                assert need.error in found, f"v{version}: {response}"
    secured.grant(*case.needs)
    for version, response in responses(case, secured):
        assert not denials(response), f"v{version}: {response}"


FIRST_VERSION_WITH_ERRORS = {ApiKey.DESCRIBE_LOG_DIRS: 3}
"""Older versions return nothing instead."""


def responses(case: Case, secured: SecuredBroker) -> Iterator[tuple[int, Any]]:
    versions = served_versions(case.key)
    for version in range(versions.min, versions.max + 1):
        request = case.build(secured.admin, version)
        if request is not None and is_encodable(request, version):
            response = secured.client.send(request, version)
            assert response is not None, f"v{version} closed the connection"
            yield version, response


def denials(value: Any) -> set[int]:
    """Returns the errors of authorization in a response."""
    if isinstance(value, list):
        return set().union(*map(denials, value)) if value else set()
    if not isinstance(value, Struct):
        return set()
    found: set[int] = set()
    for name in value.DECLARED:
        field = getattr(value, name)
        if name.endswith("error_code"):
            found |= {field} & DENIALS
        else:
            found |= denials(field)
    return found


def names(value: Any, need: Need) -> bool:
    """Returns whether a response has the resource, other than as a topic that was created."""
    if isinstance(value, list):
        return any(names(element, need) for element in value)
    if not isinstance(value, Struct):
        return bool(value == need.resource.name)
    fields = {name: getattr(value, name) for name in value.DECLARED}
    if "topic_config_error_code" in fields:
        return bool(fields["configs"])
    return any(names(field, need) for field in fields.values())
