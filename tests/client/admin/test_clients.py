"""The plain client and the one of coroutines: opened, closed, and used wrongly."""

import asyncio
import gc
import threading

import pytest
from tests.client.conftest import Threads
from tests.client.expected_errors import expect_error
from tests.server.harness import on_a_loop
from tests.wait import wait_until

from barnabas import TopicCollection
from barnabas.admin import AdminClient, KafkaError, KafkaException, NewTopic
from barnabas.client.admin import AioAdminClient
from barnabas.testing import Broker
from barnabas.testing.ports import free_port


def nowhere() -> dict[str, str]:
    return {"bootstrap.servers": f"127.0.0.1:{free_port()}"}


@on_a_loop
async def test_coroutines_return_an_outcome_for_each_item(broker: Broker, name: str) -> None:
    async with AioAdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        results = await admin.create_topics([NewTopic(name, 1, 1), NewTopic("no name", 1, 1)])
        assert results[name] is None
        assert results.errors == {"no name": KafkaError(KafkaError.TOPIC_EXCEPTION)}
        with pytest.raises(KafkaException):
            results["no name"]
        described = await admin.describe_topics(TopicCollection([name]))
        assert [each.name for each in described.values()] == [name]
        metadata = await admin.list_topics(timeout=30)
        assert name in metadata.topics


@on_a_loop
async def test_many_calls_run_at_the_same_time(broker: Broker, name: str) -> None:
    async with AioAdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        names = [f"{name}-{number}" for number in range(20)]
        await asyncio.gather(*(admin.create_topics([NewTopic(each, 1, 1)]) for each in names))
        assert set(names) <= (await admin.list_topics(timeout=30)).topics.keys()


def test_an_unreachable_address_is_named_in_the_error() -> None:
    conf = nowhere()
    with AdminClient(conf) as admin:
        address = conf["bootstrap.servers"]
        for call in (
            lambda timeout_s: admin.describe_cluster(request_timeout=timeout_s).result(60),
            lambda timeout_s: admin.list_topics(timeout=timeout_s),
        ):
            expect_error(call, address)


def test_error_cb_is_called_in_poll() -> None:
    threads: list[threading.Thread] = []
    conf = nowhere()
    address = conf["bootstrap.servers"]
    callbacks = {"error_cb": lambda _: threads.append(threading.current_thread())}
    with AdminClient(conf | callbacks) as admin:
        expect_error(
            lambda time_s: admin.describe_cluster(request_timeout=time_s).result(60), address
        )
        assert threads == []
        assert admin.poll(30) > 0
        assert set(threads) == {threading.current_thread()}


def test_a_client_without_error_cb_logs_that_no_broker_responds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    conf = nowhere()
    with AdminClient(conf) as admin:
        expect_error(
            lambda timeout_s: admin.list_topics(timeout=timeout_s), conf["bootstrap.servers"]
        )
    down = f"1/1 brokers are down: {conf['bootstrap.servers']}: Connection refused"
    assert sum(down in line for line in caplog.messages) == 1


def test_close_fails_the_futures_that_are_not_done() -> None:
    admin = AdminClient(nowhere())
    future = admin.describe_cluster(request_timeout=60)
    admin.close()
    failure = future.exception(60)
    assert isinstance(failure, KafkaException)
    admin.close()


def test_a_closed_client_raises() -> None:
    admin = AdminClient(nowhere())
    admin.close()
    with pytest.raises(KafkaException) as raised:
        admin.list_topics(timeout=1)
    assert raised.value.args[0] == KafkaError._DESTROY
    with pytest.raises(KafkaException):
        admin.create_topics([NewTopic("t", 1, 1)])


def test_an_unreferenced_client_is_closed(broker: Broker, threads: Threads) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.list_topics(timeout=30)
    del admin
    gc.collect()
    wait_until(threads.have_ended, "the clients' thread ends")


def test_a_call_in_progress_keeps_an_unreferenced_client_open(
    broker: Broker, name: str, threads: Threads
) -> None:
    conf = {"bootstrap.servers": broker.bootstrap_servers}
    created = AdminClient(conf).create_topics([NewTopic(name, 1, 1)])[name]
    described = AdminClient(conf).describe_cluster()
    gc.collect()
    assert created.result(60) is None
    assert described.result(60).nodes
    wait_until(threads.have_ended, "the clients' thread ends")


def test_a_call_completes_without_a_reference_to_its_future(broker: Broker, name: str) -> None:
    conf = {"bootstrap.servers": broker.bootstrap_servers}
    AdminClient(conf).create_topics([NewTopic(name, 1, 1)])
    with AdminClient(conf) as admin:
        wait_until(lambda: name in admin.list_topics(timeout=30).topics, f"{name} is created")


def test_a_failed_call_does_not_keep_its_client_open(broker: Broker, threads: Threads) -> None:
    failed = AdminClient(nowhere()).describe_cluster(request_timeout=0.3)
    assert isinstance(failed.exception(60), KafkaException)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    refused = admin.create_topics([NewTopic("no name", 1, 1)])["no name"]
    del admin
    assert isinstance(refused.exception(60), KafkaException)
    wait_until(threads.have_ended, "the clients' thread ends")


def test_invalid_configs_are_rejected() -> None:
    with pytest.raises(TypeError):
        AdminClient(None)  # type: ignore[arg-type]
    with pytest.raises(KafkaException, match=r"bootstrap\.servers"):
        AdminClient({"bootstrap.server": "localhost:9092"})


def test_an_unknown_option_is_rejected(broker: Broker) -> None:
    with (
        AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin,
        pytest.raises(TypeError),
    ):
        admin.describe_cluster(request_timeuot=5)
