"""The programs of examples/ do the same with Barnabas and, only the import changed, with
confluent_kafka: each test runs with both, against one broker, and expects one outcome.
"""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.examples.programs import EXAMPLES, load, ported

from barnabas import Consumer, KafkaException, TopicPartition

Topic = Callable[..., str]
LINES = ["ada buys tea", "bob buys jam", "ada sells tea"]


@pytest.fixture
def fill(servers: str, world: str) -> Callable[[str, list[str]], None]:
    """Produce with the program of the same world."""
    program = load("produce", world)

    def produce(topic: str, lines: list[str]) -> None:
        assert program.main(servers, topic, lines) == 0

    return produce


Fill = Callable[[str, list[str]], None]


def test_the_producer_reports_the_delivery_of_each_line(
    servers: str, world: str, topic: Topic, capsys: pytest.CaptureFixture[str]
) -> None:
    program = load("produce", world)
    assert program.main(servers, topic(3), [f"{line}\n" for line in LINES]) == 0
    output = capsys.readouterr().out.splitlines()
    assert sorted(output) == sorted(f"delivered: {line}" for line in LINES)


def test_a_line_that_is_too_large_does_not_stop_the_others(
    servers: str, world: str, topic: Topic, capsys: pytest.CaptureFixture[str]
) -> None:
    program = load("produce", world)
    small = topic(1, max_message_bytes="200")
    assert program.main(servers, small, ["short"]) == 0
    assert program.main(servers, small, ["long" * 100]) == 0
    output = capsys.readouterr().out.splitlines()
    assert output[0] == "delivered: short"
    assert output[1].startswith("failed: longlong")


def test_the_consumer_prints_and_commits(
    servers: str, world: str, topic: Topic, fill: Fill, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = topic(2)
    fill(orders, LINES)
    capsys.readouterr()
    program = load("consume", world)
    program.main(servers, f"group-{orders}", orders, "--until-end")
    output = capsys.readouterr().out.splitlines()
    assert sorted(output) == sorted(f"{line.partition(' ')[0]}: {line}" for line in LINES)
    # Partitions keep their order.
    assert [line for line in output if line.startswith("ada")] == [
        "ada: ada buys tea",
        "ada: ada sells tea",
    ]
    # Everything was committed: the group has nothing left to print.
    program.main(servers, f"group-{orders}", orders, "--until-end")
    assert capsys.readouterr().out == ""


def test_ctrl_c_closes_the_consumer_cleanly(
    servers: str, world: str, topic: Topic, fill: Fill, tmp_path: Path
) -> None:
    orders = topic()
    fill(orders, LINES)
    script = tmp_path / "consume.py"
    script.write_text(ported((EXAMPLES / "consume.py").read_text(), world))
    process = subprocess.Popen(
        [sys.executable, "-u", script, servers, f"group-{orders}", orders],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    output = [process.stdout.readline().strip() for _ in LINES]
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=30)
    assert (process.returncode, rest.strip()) == (0, "interrupted")
    assert output == [f"{line.partition(' ')[0]}: {line}" for line in LINES]


def test_a_failed_worker_processes_its_batch_again(
    servers: str, world: str, topic: Topic, fill: Fill, tmp_path: Path
) -> None:
    orders = topic()
    fill(orders, ["one", "two", "poison", "three"])
    program = load("worker", world)
    arguments = (servers, f"group-{orders}", orders, str(tmp_path))
    with pytest.raises(ValueError, match="offset 2"):
        program.main(*arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0-0", "0-1"]
    program.work = forgiving(program.work)
    assert program.main(*arguments) == 4
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert texts == {"0-0": "ONE", "0-1": "TWO", "0-3": "THREE"}


def forgiving(work: Callable[..., None]) -> Callable[..., None]:
    def tried(*arguments: object) -> None:
        try:
            work(*arguments)
        except ValueError:
            return

    return tried


def test_the_transfer_bills_every_order_once(
    servers: str, world: str, topic: Topic, fill: Fill, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, invoices = topic(2), topic(2)
    fill(orders, [f'{{"price": {price}, "count": 2}}' for price in range(10)])
    program = load("transfer", world)
    arguments = (servers, f"group-{orders}", orders, invoices)
    assert program.main(*arguments) == 10
    fill(orders, ['{"price": 100, "count": 1}'])
    assert program.main(*arguments) == 1
    capsys.readouterr()
    reader = load("consume", world)
    reader.main(servers, f"group-{invoices}", invoices, "--until-end")
    totals = Counter(line.rpartition(": ")[2] for line in capsys.readouterr().out.splitlines())
    assert totals == Counter([*(f"{price * 2}}}" for price in range(10)), "100}"])


def test_consumption_continues_at_offsets_of_a_database(
    servers: str,
    world: str,
    topic: Topic,
    fill: Fill,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    orders = topic(2)
    fill(orders, LINES)
    program = load("external_offsets", world)
    arguments = (servers, f"group-{orders}", orders, str(tmp_path / "counts.db"))
    capsys.readouterr()
    first = program.main(*arguments)
    assert first == {"ada": 2, "bob": 1, "buys": 2, "jam": 1, "sells": 1, "tea": 2}
    assert capsys.readouterr().out.splitlines() == ["assigned [0, 1]", "revoked [0, 1]"]
    fill(orders, ["eve"])
    assert program.main(*arguments) == {**first, "eve": 1}


def test_the_admin_example_creates_alters_and_deletes_a_topic(
    servers: str, world: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"life-{world}"
    load("administer", world).main(servers, name)
    assert capsys.readouterr().out.splitlines() == [
        f"{name} created",
        f"{name} exists",
        f"{name}: 2 partitions, leaders [1, 1], kept for 1000 ms",
        "partition 0 begins at 0",
        f"{name}: 4 partitions, leaders [1, 1, 1, 1], kept for 21600000 ms",
        "deleted",
    ]


def test_a_replay_has_the_records_between_two_times(
    servers: str, world: str, topic: Topic, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = topic(2)
    producer = load("produce", world).Producer({"bootstrap.servers": servers})
    for time_ms in range(1000, 2000, 100):
        partition = time_ms // 100 % 2
        producer.produce(orders, f"at {time_ms}", partition=partition, timestamp=time_ms)
    producer.flush(30)
    program = load("replay", world)
    program.main(servers, orders, "1250", "1650")
    output = sorted(capsys.readouterr().out.splitlines())
    assert output == [f"{time_ms} at {time_ms}" for time_ms in (1300, 1400, 1500, 1600)]
    program.main(servers, orders, "1800", "9000")
    assert len(capsys.readouterr().out.splitlines()) == 2
    program.main(servers, orders, "9000", "9999")
    assert capsys.readouterr().out == ""


def test_orders_are_serialized_and_deserialized(
    servers: str, world: str, topic: Topic, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = topic()
    load("json_orders", world).main(servers, orders)
    assert capsys.readouterr().out.splitlines() == [
        f"not sent: an order of 0 tea for {orders}",
        "skipped what eve sent",
        "Order(item='tea', count=2)",
        "Order(item='jam', count=1)",
    ]


def test_words_are_counted_once_over_two_runs(
    servers: str, world: str, topic: Topic, fill: Fill
) -> None:
    lines, counts = topic(2), topic(1, cleanup_policy="compact")
    program = load("word_count", world)
    fill(lines, ["the castle", "the village"])
    assert program.main(servers, lines, counts) == {
        "the": 2,
        "castle": 1,
        "village": 1,
    }
    fill(lines, ["the bridge"])
    again = program.main(servers, lines, counts)
    assert again == {"the": 3, "castle": 1, "village": 1, "bridge": 1}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("consume", ("{group}", "{missing}")),
        ("worker", ("{group}", "{missing}", "{directory}")),
        ("transfer", ("{group}", "{missing}", "{target}")),
        ("external_offsets", ("{group}", "{missing}", "{directory}/counts.db")),
        ("word_count", ("{missing}", "{target}")),
    ],
)
def test_an_error_event_is_raised_and_not_taken_for_a_record(
    servers: str, world: str, topic: Topic, tmp_path: Path, name: str, arguments: tuple[str, ...]
) -> None:
    target = topic()
    names = {
        "group": f"group-{target}",
        "missing": f"missing-{target}",
        "target": target,
        "directory": tmp_path,
    }
    with pytest.raises(Exception, match="Unknown topic or partition"):
        load(name, world).main(servers, *(each.format(**names) for each in arguments))
    assert end_of(servers, target) == 0


def end_of(servers: str, topic: str) -> int:
    """Returns the log end offset of the topic's only partition."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "ends"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.close()
    return int(end)


# Programs for what confluent_kafka does not have, or has with another surface.


def test_a_pipeline_on_asyncio_writes_a_greeting_for_every_name(
    servers: str, topic: Topic, capsys: pytest.CaptureFixture[str]
) -> None:
    names, greetings = topic(2), topic(2)
    assert load("produce", "barnabas").main(servers, names, ["ada", "bob"]) == 0
    program = load("aio_pipeline", "barnabas")
    assert asyncio.run(program.main(servers, names, greetings)) == 2
    assert asyncio.run(program.main(servers, names, greetings)) == 0
    capsys.readouterr()
    reader = load("consume", "barnabas")
    reader.main(servers, f"group-{greetings}", greetings, "--until-end")
    assert sorted(capsys.readouterr().out.splitlines()) == [": Good day, ada", ": Good day, bob"]


def test_a_pipeline_on_asyncio_raises_an_error_event(servers: str, topic: Topic) -> None:
    greetings = topic()
    program = load("aio_pipeline", "barnabas")
    with pytest.raises(KafkaException, match="Unknown topic or partition"):
        asyncio.run(program.main(servers, f"missing-{greetings}", greetings))
    assert end_of(servers, greetings) == 0


def test_arrow_columns_are_totalled_and_written_back(
    servers: str, topic: Topic, capsys: pytest.CaptureFixture[str]
) -> None:
    sales, totals = topic(3), topic()
    program = load("arrow_totals", "barnabas")
    expected: Counter[str] = Counter()
    for number in range(20_000):
        expected[f"shop-{number & 7}"] += number & 1023
    assert program.main(servers, sales, totals, 20_000) == dict(expected)
    load("consume", "barnabas").main(servers, f"group-{totals}", totals, "--until-end")
    output = capsys.readouterr().out.splitlines()
    assert sorted(output) == sorted(f"{shop}: {total}" for shop, total in expected.items())
