"""The pytest fixtures that are available once Barnabas is installed."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

FIXTURES = (
    "kafka_broker",
    "kafka_broker_settings",
    "kafka_consumer",
    "kafka_producer",
    "kafka_topic",
    "fresh_kafka_broker",
    "schema_registry",
)


def test_every_fixture_is_available_and_documented(
    pytester: pytest.Pytester,
) -> None:
    listed = pytester.runpytest_subprocess("--fixtures").stdout.str()
    for name in FIXTURES:
        _, _, described = listed.partition(f"\n{name} ")
        assert described, name
        assert "no docstring available" not in described.splitlines()[1]


def test_the_broker_is_shared_and_the_fresh_one_is_not(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        seen = []

        def test_one(kafka_broker, fresh_kafka_broker):
            seen.append((kafka_broker.bootstrap_servers, fresh_kafka_broker.bootstrap_servers))

        def test_two(kafka_broker, fresh_kafka_broker):
            seen.append((kafka_broker.bootstrap_servers, fresh_kafka_broker.bootstrap_servers))

        def test_both():
            (first, fresh), (second, fresher) = seen
            assert first == second
            assert len({first, fresh, fresher}) == 3
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=3)


def test_a_topic_exists_for_one_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from confluent_kafka.admin import AdminClient

        names = set()

        @pytest.mark.parametrize("what", ["a/b c", "ü", "x" * 300])
        def test_it_is_there(kafka_broker, kafka_topic, what):
            admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
            assert kafka_topic in admin.list_topics(timeout=10).topics
            names.add(kafka_topic)

        def test_they_are_gone(kafka_broker):
            assert len(names) == 3
            admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
            assert not names & admin.list_topics(timeout=10).topics.keys()
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=4)


def test_the_client_fixtures_produce_and_consume(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_clients(kafka_topic, kafka_producer, kafka_consumer):
            kafka_producer.produce(kafka_topic, b"hello")
            kafka_producer.flush(10)
            assert kafka_consumer.poll(10).value() == b"hello"
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_registry_is_shared_and_stores_schemas_on_the_broker(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        from barnabas.schema_registry import Schema, SchemaRegistryClient

        def test_a_schema_is_registered(schema_registry):
            client = SchemaRegistryClient({"url": schema_registry.url})
            assert client.register_schema("names", Schema('"string"', "AVRO")) == 1

        def test_the_next_test_finds_it(kafka_broker, kafka_producer, schema_registry):
            client = SchemaRegistryClient({"url": schema_registry.url})
            assert client.get_subjects() == ["names"]
            assert "_schemas" in kafka_producer.list_topics(timeout=10).topics
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_without_the_libraries_of_the_registry_the_error_names_the_extra(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest("import sys; sys.modules['uvicorn'] = None")  # importing it fails
    pytester.makepyfile("def test_a_schema(schema_registry): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pip install 'barnabas[[]registry]'*"])


def test_an_unknown_broker_setting_names_the_nearest_known_one(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def kafka_broker_settings():
            return {"num.partition": 3}
        """
    )
    pytester.makepyfile("def test_a_broker(kafka_broker): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*num.partition is not a setting*did you mean num.partitions?"])


def test_a_project_can_override_the_broker_settings(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def kafka_broker_settings():
            return {"auto.create.topics.enable": False}
        """
    )
    pytester.makepyfile(
        """
        from confluent_kafka import KafkaError, Producer

        def test_it_obeys(kafka_broker):
            producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
            topic = producer.list_topics("absent", 10).topics["absent"]
            assert topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_project_without_the_fixtures_imports_only_the_plugin() -> None:
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, pytest; before = set(sys.modules); import barnabas.testing.plugin;"
            "print(*sorted(set(sys.modules) - before))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {name for name in loaded.stdout.split() if name.startswith("barnabas")} == {
        "barnabas",
        "barnabas.lazy",
        "barnabas.testing",
        "barnabas.testing.plugin",
    }
