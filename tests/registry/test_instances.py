"""Several instances on the same brokers, and brokers that stop."""

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.conformance.brokers import free_port
from tests.registry.http_requests import HttpResponse, record, send_request
from tests.registry.processes import RegistryProcess
from tests.wait import wait_until

from barnabas import Producer, TopicPartition
from barnabas.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from barnabas.client.compacted_topic import TopicError
from barnabas.registry.service import SchemaRegistry
from barnabas.testing import Broker

TIMEOUT_S = 60


@pytest.fixture
def three(fresh_kafka_broker: Broker, tmp_path: Path) -> Iterator[list[RegistryProcess]]:
    servers = fresh_kafka_broker.bootstrap_servers
    started = [RegistryProcess(servers, tmp_path / f"{item}.log") for item in range(3)]
    try:
        yield [item.wait() for item in started]
    finally:
        for item in started:
            item.stop(signal.SIGKILL)


def register(url: str, subject: str) -> HttpResponse:
    return send_request(url, "POST", f"/subjects/{subject}/versions", record("x", name=subject))


def registered_at_last(url: str, subject: str) -> int:
    """Returns the id, once there is a leader again."""
    ids: list[int] = []

    def is_registered() -> bool:
        try:
            response = register(url, subject)
        except OSError:
            return False  # the connection was closed
        if response.status != 200:
            assert response.error_code in (50001, 50002, 50003, 50004), response.content
            return False
        ids.append(response.json["id"])
        return True

    wait_until(is_registered, f"{subject} is registered", TIMEOUT_S)
    return ids[0]


def subjects(url: str) -> list[str]:
    names: list[str] = send_request(url, "GET", "/subjects").json
    return names


def ids(url: str) -> list[tuple[int, str]]:
    return sorted(
        (item["id"], item["subject"]) for item in send_request(url, "GET", "/schemas").json
    )


def find_leader(instances: list[RegistryProcess]) -> RegistryProcess:
    """Waits until there is one: on a busy machine, a live leader may be considered dead."""
    leaders: list[RegistryProcess] = []

    def is_one() -> bool:
        leaders[:] = [instance for instance in instances if instance.is_leader]
        return len(leaders) == 1

    wait_until(is_one, "there is one leader", TIMEOUT_S)
    return leaders[0]


def test_one_instance_leads_and_another_takes_over_when_it_dies(
    three: list[RegistryProcess],
) -> None:
    registered = {f"S{n}": registered_at_last(three[n % 3].url, f"S{n}") for n in range(9)}
    assert sorted(registered.values()) == list(range(1, 10))
    for item in three:
        wait_until(
            lambda url=item.url: subjects(url) == sorted(registered), "all is read", TIMEOUT_S
        )
    leader = find_leader(three)
    leader.stop(signal.SIGKILL)
    rest = [item for item in three if item is not leader]
    registered["After"] = registered_at_last(rest[0].url, "After")
    assert registered["After"] == 10
    assert "After" in subjects(rest[0].url)  # at once at the instance that got the request
    wait_until(lambda: "After" in subjects(rest[1].url), "the other has read it", TIMEOUT_S)
    for subject, id_ in registered.items():
        found = send_request(rest[1].url, "GET", f"/subjects/{subject}/versions/1").json
        assert found["id"] == id_
    assert [item.stop() for item in rest] == [0, 0]


def test_a_leader_that_was_paused_cannot_assign_an_id_twice(three: list[RegistryProcess]) -> None:
    first = registered_at_last(three[0].url, "Before")
    paused = find_leader(three)
    rest = [item for item in three if item is not paused]
    paused.send(signal.SIGSTOP)
    meanwhile = registered_at_last(rest[0].url, "Meanwhile")
    paused.send(signal.SIGCONT)
    after = registered_at_last(paused.url, "After")
    again = registered_at_last(rest[1].url, "Again")
    assert [first, meanwhile, after, again] == [1, 2, 3, 4]
    expected = [(1, "Before"), (2, "Meanwhile"), (3, "After"), (4, "Again")]
    for item in three:
        wait_until(lambda url=item.url: ids(url) == expected, "all is read", TIMEOUT_S)


def test_a_schema_registered_concurrently_gets_one_id(fresh_kafka_broker: Broker) -> None:
    servers = fresh_kafka_broker.bootstrap_servers
    with ExitStack() as stack:
        urls = [stack.enter_context(SchemaRegistry(servers)).url for _ in range(2)]
        with ThreadPoolExecutor(8) as pool:
            responses = list(pool.map(lambda n: register(urls[n % 2], "Same"), range(24)))
        assert {response.json["id"] for response in responses} == {1}
        assert send_request(urls[0], "GET", "/subjects/Same/versions").json == [1]


def test_leaders_of_two_groups_on_one_topic_fence_each_other(fresh_kafka_broker: Broker) -> None:
    servers = fresh_kafka_broker.bootstrap_servers
    with ExitStack() as stack:
        groups = (SchemaRegistry(servers, group_id=item) for item in ("one", "two"))
        one, two = (stack.enter_context(group).url for group in groups)
        assert register(one, "First").json["id"] == 1
        assert register(two, "Second").json["id"] == 2
        assert register(one, "Third").error_code == 50001
        assert registered_at_last(one, "Third") == 3


def test_reads_do_not_wait_for_an_election(fresh_kafka_broker: Broker) -> None:
    servers = fresh_kafka_broker.bootstrap_servers
    for_long = 10 * TIMEOUT_S * 1000
    with SchemaRegistry(servers, leader_eligibility=False, timeout_ms=for_long) as registry:
        assert send_request(registry.url, "GET", "/subjects").json == []
    with SchemaRegistry(servers) as registry:
        assert register(registry.url, "Known").status == 200
    with SchemaRegistry(servers, leader_eligibility=False, timeout_ms=100) as registry:
        assert register(registry.url, "Nobody").error_code == 50004
        assert register(registry.url, "Known").json["id"] == 1  # needs no write


def test_an_unreachable_broker_is_reported_and_retried(fresh_kafka_broker: Broker) -> None:
    servers = fresh_kafka_broker.bootstrap_servers
    with SchemaRegistry(servers, timeout_ms=2_000, session_timeout_ms=6_000) as registry:
        registered_at_last(registry.url, "Before")
        fresh_kafka_broker.stop()
        assert register(registry.url, "Away").error_code in (50001, 50002, 50004)
        assert send_request(registry.url, "GET", "/subjects").json == ["Before"]
        fresh_kafka_broker.start()
        registered_at_last(registry.url, "After")
        assert "After" in send_request(registry.url, "GET", "/subjects").json


@pytest.mark.parametrize("limit", [{}, {"message.max.bytes": "10000000"}], ids=["here", "broker"])
def test_a_schema_that_is_too_large_does_not_cost_the_leader_its_leadership(
    fresh_kafka_broker: Broker, limit: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "barnabas.registry")
    fixed = {"type": "fixed", "name": "Huge", "size": 1, "doc": "x" * 1_200_000}
    huge = {"schema": json.dumps(fixed)}
    with SchemaRegistry(fresh_kafka_broker.bootstrap_servers, client=limit) as registry:
        register(registry.url, "Before")
        assert (
            send_request(registry.url, "POST", "/subjects/Huge/versions", huge).error_code == 42209
        )
        assert register(registry.url, "After").json["id"] == 2
        assert "no longer" not in caplog.text


def test_the_registry_waits_for_brokers_and_logs_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unused_address = f"127.0.0.1:{free_port()}"
    with pytest.raises(TopicError, match=f"no broker responds: {unused_address}"):
        SchemaRegistry(unused_address, start_timeout_ms=2_500).start()
    assert f"waiting for brokers: no broker responds: {unused_address}" in caplog.text


def test_schemas_survive_a_restart(fresh_kafka_broker: Broker) -> None:
    servers = fresh_kafka_broker.bootstrap_servers
    with SchemaRegistry(servers) as registry:
        register(registry.url, "One")
        send_request(registry.url, "PUT", "/config/One", {"compatibility": "FULL"})
        send_request(registry.url, "DELETE", "/subjects/One")
    with SchemaRegistry(servers) as registry:
        assert send_request(registry.url, "GET", "/subjects?deleted=true").json == ["One"]
        assert send_request(registry.url, "GET", "/config/One").json["compatibilityLevel"] == "FULL"
        assert register(registry.url, "Two").json["id"] == 2


def test_unreadable_records_in_the_topic_are_skipped(fresh_kafka_broker: Broker) -> None:
    servers = fresh_kafka_broker.bootstrap_servers
    key = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    with SchemaRegistry(servers) as registry:
        with Producer({"bootstrap.servers": servers}) as producer:
            producer.produce("_schemas", b'{"id":"one","schema":"x"}', key)
            producer.produce("_schemas", b"no JSON", b"neither")
        assert register(registry.url, "One").json["id"] == 1
    with SchemaRegistry(servers) as registry:
        assert send_request(registry.url, "GET", "/subjects").json == ["One"]


def test_the_topic_is_read_from_its_log_start_offset(fresh_kafka_broker: Broker) -> None:
    servers = fresh_kafka_broker.bootstrap_servers
    fresh_kafka_broker.create_topic("moved")
    with Producer({"bootstrap.servers": servers}) as producer:
        producer.produce("moved", "removed")
    admin = AdminClient({"bootstrap.servers": servers})
    first = TopicPartition("moved", 0, 1)
    admin.delete_records([first])[first].result(TIMEOUT_S)
    compact = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "moved", incremental_configs=[compact])
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    with SchemaRegistry(servers, topic="moved") as registry:
        register(registry.url, "One")
    with SchemaRegistry(servers, topic="moved") as registry:
        assert send_request(registry.url, "GET", "/subjects").json == ["One"]


@pytest.mark.parametrize("records", [0, 50], ids=["shorter", "longer"])
def test_a_recreated_topic_replaces_the_state(
    fresh_kafka_broker: Broker, records: int, caplog: pytest.LogCaptureFixture
) -> None:
    with SchemaRegistry(fresh_kafka_broker.bootstrap_servers) as registry:
        register(registry.url, "One")
        register(registry.url, "Two")
        fresh_kafka_broker.delete_topic("_schemas")
        assert subjects(registry.url) == ["One", "Two"]  # still readable
        fresh_kafka_broker.create_topic("_schemas", config={"cleanup.policy": "compact"})
        with Producer({"bootstrap.servers": fresh_kafka_broker.bootstrap_servers}) as producer:
            for _ in range(records):
                producer.produce("_schemas", None, b'{"keytype":"NOOP","magic":0}')
        registered_at_last(registry.url, "Three")
        wait_until(
            lambda: subjects(registry.url) == ["Three"], "earlier subjects are removed", TIMEOUT_S
        )
        assert "is read again from its beginning" in caplog.text
        assert registered_at_last(registry.url, "Four")
        assert subjects(registry.url) == ["Four", "Three"]


def test_a_topic_that_could_lose_schemas_is_rejected(fresh_kafka_broker: Broker) -> None:
    servers = fresh_kafka_broker.bootstrap_servers
    fresh_kafka_broker.create_topic("deleting")
    with pytest.raises(TopicError, match=r"cleanup\.policy=delete and would lose schemas"):
        SchemaRegistry(servers, topic="deleting").start()
    fresh_kafka_broker.create_topic("wide", 3)
    with pytest.raises(TopicError, match="has 3 partitions"):
        SchemaRegistry(servers, topic="wide").start()
