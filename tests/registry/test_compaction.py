"""A registry on a compacted topic: what it serves does not change, and no id is used twice."""

from typing import Any

from tests.registry.http_requests import send_request

from barnabas.registry.service import SchemaRegistry
from barnabas.testing import Broker

DAY_S = 24 * 3600
LEVELS = ("NONE", "FULL")


def register(url: str, subject: str, name: str) -> int:
    schema = f'{{"type": "record", "name": "{name}", "fields": []}}'
    response = send_request(url, "POST", f"/subjects/{subject}/versions", {"schema": schema})
    assert response.status == 200, response.content
    return int(response.json["id"])


def content(url: str) -> list[Any]:
    """Returns everything that clients see."""
    subjects = send_request(url, "GET", "/subjects?deleted=true").json
    return [
        subjects,
        send_request(url, "GET", "/schemas?deleted=true").json,
        send_request(url, "GET", "/config/orders-value").json,
    ]


def delete_permanently(url: str, subject: str) -> None:
    for query in ("", "?permanent=true"):
        assert send_request(url, "DELETE", f"/subjects/{subject}{query}").status == 200


def size_bytes(broker: Broker) -> int:
    return sum(path.stat().st_size for path in (broker.directory / "_schemas-0").glob("*.log"))


def test_compaction_changes_nothing_that_a_registry_serves() -> None:
    with Broker() as broker:
        with SchemaRegistry(broker.bootstrap_servers) as registry:
            for number in range(30):
                level = {"compatibility": LEVELS[number % 2]}
                send_request(registry.url, "PUT", "/config/orders-value", level)
            first = register(registry.url, "orders-value", "Order")
            before, before_bytes = content(registry.url), size_bytes(broker)
            broker.compact()
            assert content(registry.url) == before
            last = register(registry.url, "gone-value", "Gone")
            assert last > first
            delete_permanently(registry.url, "gone-value")
            before = content(registry.url)
        broker.compact()
        broker.clock.advance(DAY_S + 1)
        for _ in range(2):  # one removes tombstones, and one the markers without records
            broker.compact()
            broker.clock.advance(DAY_S + 1)
        assert size_bytes(broker) < before_bytes / 4
        with SchemaRegistry(broker.bootstrap_servers) as registry:
            assert content(registry.url) == before
            assert register(registry.url, "new-value", "New") > last
