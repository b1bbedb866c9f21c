"""The tables of docs/security.md are those of the tests that compare authorization with Kafka."""

from pathlib import Path

from tests.conformance.authorization.cases import CASES, Case, Need
from tests.server.controller_api.test_authorization import ON_THE_CLUSTER

from barnabas.security.authorizer.model import ResourceType
from barnabas.wire.apis import api

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()

RESOURCES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
}


def row(case: Case) -> str:
    name = api(case.key).name + (f" {case.variant}" if case.variant else "")
    needs = "; ".join(dict.fromkeys(map(describe, case.needs)))
    return f"| {name} | {needs} |"


def describe(need: Need) -> str:
    outcome = f"{need.error.name}" if need.error is not None else "left out"
    return f"{need.operation.name} {RESOURCES[need.resource.type]}: {outcome}"


def rows_after(header: str) -> list[str]:
    _, found, rest = PAGE.partition(f"{header}\n| --- | --- |\n")
    assert found, f"docs/security.md has no table {header}"
    return rest.partition("\n\n")[0].splitlines()


def test_the_page_has_the_permissions_of_every_api() -> None:
    assert rows_after("| request | needs, in this order: without it |") == list(
        dict.fromkeys(map(row, CASES))
    )


def test_the_page_has_the_permissions_of_controllers() -> None:
    expected = [
        f"| {api(key).name} | {operation.name} |" for key, operation in ON_THE_CLUSTER.items()
    ]
    assert rows_after("| request | needs on the cluster |") == expected
