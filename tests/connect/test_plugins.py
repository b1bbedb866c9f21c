import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.connect.rest.plugins_of_tests import MODULE, FileSink, Rename, TextConverter

from barnabas.connect import plugins
from barnabas.connect.plugins import (
    CONNECTOR_KINDS,
    PluginKind,
    PluginNotFoundError,
    PluginNotLoadedError,
    all_plugins,
    find_connector,
    find_converter,
    find_transform,
    plugin_named,
    resolve_connector,
)


@pytest.mark.parametrize(
    ("name", "kind", "target"),
    [
        ("org.apache.kafka.connect.file.FileStreamSinkConnector", "sink", "FileStreamSink"),
        ("FileStreamSinkConnector", "sink", "FileStreamSink"),
        ("FileStreamSink", "sink", "FileStreamSink"),
        ("Datagen", "source", "Datagen"),
        ("io.aiven.connect.jdbc.JdbcSourceConnector", "source", "JdbcSource"),
        ("JdbcSink", "sink", "JdbcSink"),
        ("ObjectStoreSink", "sink", "ObjectStoreSink"),
        ("Json", "converter", "JsonConverter"),
        ("JsonConverter", "converter", "JsonConverter"),
        ("ByteArray", "converter", "ByteArrayConverter"),
        ("Simple", "header_converter", "SimpleHeaderConverter"),
        ("org.apache.kafka.connect.transforms.Cast$Value", "transformation", "CastValue"),
        ("RegexRouter", "transformation", "RegexRouter"),
        ("HasHeaderKey", "predicate", "HasHeaderKey"),
    ],
)
def test_names_and_aliases_are_connects(name: str, kind: str, target: str) -> None:
    plugin = plugin_named(name, PluginKind(kind))
    assert plugin is not None
    assert plugin.target.partition(":")[2] == target


def test_one_name_may_be_a_converter_of_values_and_of_headers() -> None:
    name = "org.apache.kafka.connect.storage.StringConverter"
    of_values = plugin_named(name, PluginKind.CONVERTER)
    of_headers = plugin_named(name, PluginKind.HEADER_CONVERTER)
    assert of_values is not None
    assert of_headers is not None
    assert of_values.target != of_headers.target


def test_a_class_of_a_module_needs_no_declaration() -> None:
    assert find_connector(f"{MODULE}:FileSink") is FileSink
    assert find_converter(f"{MODULE}:TextConverter") is TextConverter
    assert find_transform(f" {MODULE}:Rename ") is Rename


def test_spark_is_a_sink_if_there_are_topics() -> None:
    assert resolve_connector("spark", {"topics": "a"}) == "SparkSink"
    assert resolve_connector("spark", {"topics.regex": "a"}) == "SparkSink"
    assert resolve_connector("spark", {"topics": " "}) == "SparkSource"
    assert resolve_connector("spark") == "SparkSource"


class TestUnknownNames:
    @pytest.mark.parametrize(
        ("name", "nearest"),
        [
            ("FileStreamSorce", "FileStreamSource"),
            ("filestreamsinkconnector", "FileStreamSinkConnector"),
            ("org.apache.kafka.connect.file.FileStreamSource", "FileStreamSourceConnector"),
            ("JdbcSoure", "JdbcSource"),
        ],
    )
    def test_the_nearest_name_is_suggested(self, name: str, nearest: str) -> None:
        with pytest.raises(PluginNotFoundError) as raised:
            find_connector(name)
        message = str(raised.value)
        assert message.startswith(
            f"Failed to find any class that implements Connector and which name matches {name}, "
            "available connectors are: "
        )
        assert message.endswith(f"{nearest}?")

    def test_nothing_near_suggests_nothing(self) -> None:
        with pytest.raises(PluginNotFoundError) as raised:
            find_connector("Xyzzy")
        assert "mean" not in str(raised.value)

    @pytest.mark.parametrize(
        ("name", "advice"),
        [
            ("io.debezium.connector.postgresql.PostgresConnector", "JdbcSource"),
            ("io.debezium.connector.jdbc.JdbcSinkConnector", "JdbcSink"),
            ("org.apache.iceberg.connect.IcebergSinkConnector", "ObjectStoreSink"),
            ("io.confluent.connect.elasticsearch.ElasticsearchSinkConnector", "Elasticsearch"),
            ("com.mongodb.kafka.connect.MongoSinkConnector", "MongoDB"),
        ],
    )
    def test_well_known_connectors_have_an_alternative(self, name: str, advice: str) -> None:
        with pytest.raises(PluginNotFoundError) as raised:
            find_connector(name)
        assert advice in str(raised.value).rpartition(". ")[2]


class TestLoading:
    def test_a_missing_module_is_named(self) -> None:
        with pytest.raises(PluginNotLoadedError, match="there is no module none_of_these"):
            find_connector("none_of_these.connect:Source")

    def test_a_missing_class_is_named(self) -> None:
        with pytest.raises(PluginNotLoadedError, match="has no attribute 'None_'"):
            find_connector(f"{MODULE}:None_")

    def test_a_class_has_to_be_of_its_kind(self) -> None:
        with pytest.raises(
            PluginNotLoadedError, match="does not implement the Connector interface"
        ):
            find_connector(f"{MODULE}:Rename")
        with pytest.raises(PluginNotLoadedError, match="it is not a class"):
            find_connector(f"{MODULE}:NOT_A_CLASS")

    def test_listing_imports_no_plugin(self) -> None:
        program = (
            "import sys; from barnabas.connect.plugins import all_plugins; all_plugins();"
            "print(*({'pyspark', 'pyarrow', 'numpy'} & {*sys.modules}))"
        )
        completed = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert completed.stdout.split() == []


class TestInstalledPlugins:
    @pytest.fixture(autouse=True)
    def entry_points(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        group = plugins.ENTRY_POINT_GROUP
        declared = [
            importlib.metadata.EntryPoint(name, value, group)
            for name, value in [
                ("TestSink", f"{MODULE}:FileSink"),
                ("Rename", f"{MODULE}:Rename"),
                ("Broken", "none_of_these:Source"),
                ("NoPlugin", "collections:Counter"),
            ]
        ]
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: declared)
        self._forget()
        yield
        monkeypatch.undo()
        self._forget()

    @staticmethod
    def _forget() -> None:
        for function in (
            plugins._installed_plugins,
            plugins._plugins,
            plugins._plugins_by_name,
        ):
            function.cache_clear()

    def test_are_listed_and_found_by_name(self) -> None:
        sinks = {plugin.name: plugin for plugin in all_plugins(PluginKind.SINK)}
        assert sinks["TestSink"].version == "7"
        assert find_connector("TestSink") is FileSink
        assert find_transform("Rename") is Rename

    def test_others_are_left_out_with_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        names = {plugin.name for plugin in all_plugins()}
        assert not names & {"Broken", "NoPlugin"}
        assert "there is no module none_of_these" in caplog.text
        assert "extends no class of Connect" in caplog.text


@pytest.mark.parametrize("plugin", all_plugins(), ids=lambda plugin: f"{plugin.kind}-{plugin.name}")
def test_every_plugin_can_be_loaded(plugin: plugins.Plugin) -> None:
    found = plugin.load()
    if plugin.kind in CONNECTOR_KINDS:
        assert find_connector(plugin.name) is found
