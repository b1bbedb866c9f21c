"""Finds connectors, converters, transforms and predicates by their names.

A name is Java's class name (`org.apache.kafka.connect.json.JsonConverter`), its alias (`Json`), a
name that a package declares as an entry point in the group `barnabas.connect`, or `module:Class`.
A transform may also be `module:function`.

    [project.entry-points."barnabas.connect"]
    RestSource = "acme.connect:RestSource"

Listing plugins imports none of ours, so it needs no pyspark, pyarrow or driver of a database.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    from barnabas.connect.connector import Connector
    from barnabas.connect.converters.converter import Converter
    from barnabas.connect.converters.headers import HeaderConverter
    from barnabas.connect.transforms.transform import Predicate, Transform

log = logging.getLogger(__name__)

ENTRY_POINT_GROUP: Final = "barnabas.connect"


class PluginKind(StrEnum):
    """The values are the types that the REST API lists."""

    SINK = "sink"
    SOURCE = "source"
    TRANSFORM = "transformation"
    PREDICATE = "predicate"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"


CONNECTOR_KINDS: Final = (PluginKind.SINK, PluginKind.SOURCE)

_INTERFACES: Final = {
    PluginKind.SINK: "Connector",
    PluginKind.SOURCE: "Connector",
    PluginKind.TRANSFORM: "Transformation",
    PluginKind.PREDICATE: "Predicate",
    PluginKind.CONVERTER: "Converter",
    PluginKind.HEADER_CONVERTER: "HeaderConverter",
}
"""Kafka's names of the interfaces: they are in messages, and suffixes that an alias leaves out."""


class PluginNotFoundError(ConnectError):
    """There is no plugin of this name and kind."""


class PluginNotLoadedError(ConnectError):
    """A plugin cannot be imported, or is not of its kind."""


@dataclass(slots=True, frozen=True)
class Plugin:
    """A plugin that has a name. It is not imported yet."""

    name: str
    """What the REST API shows."""
    kind: PluginKind
    target: str
    """module:Class"""
    version: str | None = None
    other_names: tuple[str, ...] = ()

    @property
    def names(self) -> Iterable[str]:
        """The name, and its aliases."""
        for name in (self.name, *self.other_names):
            yield name
            simple = name.rpartition(".")[2]
            yield simple
            yield simple.removesuffix(_INTERFACES[self.kind]) or simple

    def load(self) -> type:
        """Imports the class. Raises PluginNotLoadedError."""
        return _load(self.target, self.name)


# What we have

_KAFKA: Final = "org.apache.kafka.connect"
_CONFLUENT: Final = "io.confluent"
_CONNECTORS: Final = "barnabas.connect.connectors"
_CONVERTERS: Final = "barnabas.connect.converters"
_TRANSFORMS: Final = "barnabas.connect.transforms"

_SOURCES: Final = {
    f"{_KAFKA}.file.FileStreamSourceConnector": f"{_CONNECTORS}.file_stream:FileStreamSource",
    f"{_CONFLUENT}.kafka.connect.datagen.DatagenConnector": f"{_CONNECTORS}.datagen:Datagen",
    f"{_CONFLUENT}.connect.jdbc.JdbcSourceConnector": f"{_CONNECTORS}.jdbc:JdbcSource",
    "SparkSource": f"{_CONNECTORS}.spark_format:SparkSource",
}
_SINKS: Final = {
    f"{_KAFKA}.file.FileStreamSinkConnector": f"{_CONNECTORS}.file_stream:FileStreamSink",
    f"{_CONFLUENT}.connect.jdbc.JdbcSinkConnector": f"{_CONNECTORS}.jdbc:JdbcSink",
    f"{_CONFLUENT}.connect.s3.S3SinkConnector": f"{_CONNECTORS}.object_store:S3Sink",
    "ObjectStoreSink": f"{_CONNECTORS}.object_store:ObjectStoreSink",
    "SparkSink": f"{_CONNECTORS}.spark_format:SparkSink",
}
_OTHER_NAMES: Final = {
    f"{_CONFLUENT}.connect.jdbc.JdbcSourceConnector": (
        "io.aiven.connect.jdbc.JdbcSourceConnector",
    ),
    f"{_CONFLUENT}.connect.jdbc.JdbcSinkConnector": ("io.aiven.connect.jdbc.JdbcSinkConnector",),
}

_NUMBERS: Final = ("Boolean", "Double", "Float", "Integer", "Long", "Short")
_CONVERTER_TARGETS: Final = {
    **{
        f"{_KAFKA}.converters.{name}Converter": f"{_CONVERTERS}.numbers:{name}Converter"
        for name in _NUMBERS
    },
    f"{_KAFKA}.converters.ByteArrayConverter": f"{_CONVERTERS}.plain:ByteArrayConverter",
    f"{_KAFKA}.json.JsonConverter": f"{_CONVERTERS}.json:JsonConverter",
    f"{_KAFKA}.storage.StringConverter": f"{_CONVERTERS}.plain:StringConverter",
    f"{_CONFLUENT}.connect.avro.AvroConverter": f"{_CONVERTERS}.avro:AvroConverter",
    f"{_CONFLUENT}.connect.json.JsonSchemaConverter": (
        f"{_CONVERTERS}.json_schema:JsonSchemaConverter"
    ),
    f"{_CONFLUENT}.connect.protobuf.ProtobufConverter": f"{_CONVERTERS}.protobuf:ProtobufConverter",
}
_HEADER_CONVERTER_TARGETS: Final = {
    **{
        f"{_KAFKA}.converters.{name}Converter": f"{_CONVERTERS}.headers:{name}HeaderConverter"
        for name in _NUMBERS
    },
    f"{_KAFKA}.converters.ByteArrayConverter": f"{_CONVERTERS}.headers:ByteArrayHeaderConverter",
    f"{_KAFKA}.json.JsonConverter": f"{_CONVERTERS}.headers:JsonHeaderConverter",
    f"{_KAFKA}.storage.SimpleHeaderConverter": f"{_CONVERTERS}.headers:SimpleHeaderConverter",
    f"{_KAFKA}.storage.StringConverter": f"{_CONVERTERS}.headers:StringHeaderConverter",
}

_KEY_AND_VALUE_TRANSFORMS: Final = {
    "Cast": "cast",
    "ExtractField": "extract_field",
    "Flatten": "flatten",
    "HeaderFrom": "headers",
    "HoistField": "hoist_field",
    "InsertField": "insert_field",
    "MaskField": "mask_field",
    "ReplaceField": "replace_field",
    "SetSchemaMetadata": "set_schema_metadata",
    "TimestampConverter": "timestamp_converter",
}
_OTHER_TRANSFORMS: Final = {
    "DropHeaders": "headers",
    "Filter": "filter",
    "InsertHeader": "headers",
    "RegexRouter": "routers",
    "TimestampRouter": "routers",
    "ValueToKey": "value_to_key",
}
_TRANSFORM_TARGETS: Final = {
    **{
        f"{_KAFKA}.transforms.{name}${part}": f"{_TRANSFORMS}.{module}:{name}{part}"
        for name, module in _KEY_AND_VALUE_TRANSFORMS.items()
        for part in ("Key", "Value")
    },
    **{
        f"{_KAFKA}.transforms.{name}": f"{_TRANSFORMS}.{module}:{name}"
        for name, module in _OTHER_TRANSFORMS.items()
    },
}
_PREDICATE_TARGETS: Final = {
    f"{_KAFKA}.transforms.predicates.{name}": f"{_TRANSFORMS}.predicates:{name}"
    for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
}

_TARGETS: Final = {
    PluginKind.SINK: _SINKS,
    PluginKind.SOURCE: _SOURCES,
    PluginKind.TRANSFORM: _TRANSFORM_TARGETS,
    PluginKind.PREDICATE: _PREDICATE_TARGETS,
    PluginKind.CONVERTER: _CONVERTER_TARGETS,
    PluginKind.HEADER_CONVERTER: _HEADER_CONVERTER_TARGETS,
}

SPARK_FORMAT: Final = "spark"
"""The connector class of any Spark format: a sink if the settings have topics, or a source."""

_ALTERNATIVES: Final = {
    "io.debezium.": "There is no change data capture. JdbcSource reads new and changed rows of "
    "tables by a column that grows",
    "org.apache.iceberg.": "There is no Iceberg connector. ObjectStoreSink writes Parquet files, "
    "and connector.class=spark writes any format that Spark has a package for",
    "io.tabular.iceberg.": "There is no Iceberg connector. ObjectStoreSink writes Parquet files, "
    "and connector.class=spark writes any format that Spark has a package for",
    "io.confluent.connect.gcs.": "ObjectStoreSink writes to object stores and directories",
    "io.confluent.connect.azure.": "ObjectStoreSink writes to object stores and directories",
    "io.confluent.connect.hdfs": "ObjectStoreSink writes to object stores and directories",
    "io.aiven.kafka.connect.s3.": "S3Sink and ObjectStoreSink write to S3, with the settings of "
    "Confluent's connector",
    "io.debezium.connector.jdbc.": "JdbcSink writes to tables, with the settings of Confluent's "
    "connector",
    "org.apache.kafka.connect.mirror.": "Mirroring does not run as connectors",
}
_NO_CONNECTOR: Final = (
    ("elasticsearch", "Elasticsearch"),
    ("opensearch", "OpenSearch"),
    ("mongodb", "MongoDB"),
    ("snowflake", "Snowflake"),
    ("bigquery", "BigQuery"),
    ("clickhouse", "ClickHouse"),
    ("connect.http", "HTTP"),
    ("cassandra", "Cassandra"),
    ("redis", "Redis"),
)


# Finding


def find_connector(name: str, config: Mapping[str, str | None] | None = None) -> type[Connector]:
    """Returns the class. `config` decides whether `spark` is a source or a sink.

    Raises PluginNotFoundError or PluginNotLoadedError.
    """
    from barnabas.connect.connector import SinkConnector, SourceConnector

    found: type[Connector] = _find(
        resolve_connector(name, config), CONNECTOR_KINDS, (SinkConnector, SourceConnector)
    )
    return found


def resolve_connector(name: str, config: Mapping[str, str | None] | None = None) -> str:
    """Returns the name of the connector that `spark` stands for; any other name as it is."""
    if name != SPARK_FORMAT:
        return name
    config = config or {}
    is_sink = any((config.get(key) or "").strip() for key in ("topics", "topics.regex"))
    return "SparkSink" if is_sink else "SparkSource"


def find_converter(name: str) -> type[Converter]:
    """Returns the class of a key or value converter. Raises as `find_connector`."""
    from barnabas.connect.converters.converter import Converter

    found: type[Converter] = _find(name, (PluginKind.CONVERTER,), (Converter,))
    return found


def find_header_converter(name: str) -> type[HeaderConverter]:
    """Raises as `find_connector`."""
    from barnabas.connect.converters.headers import HeaderConverter

    found: type[HeaderConverter] = _find(name, (PluginKind.HEADER_CONVERTER,), (HeaderConverter,))
    return found


def find_transform(name: str) -> type[Transform]:
    """Raises as `find_connector`."""
    from barnabas.connect.transforms.transform import Transform

    found: type[Transform] = _find(name, (PluginKind.TRANSFORM,), (Transform,))
    return found


def find_predicate(name: str) -> type[Predicate]:
    """Raises as `find_connector`."""
    from barnabas.connect.transforms.transform import Predicate

    found: type[Predicate] = _find(name, (PluginKind.PREDICATE,), (Predicate,))
    return found


def find_plugin(name: str) -> tuple[type[Any], PluginKind]:
    """Returns a class of any kind. Raises as `find_connector`."""
    name = resolve_connector(name.strip())
    plugin = plugin_named(name)
    if plugin is not None:
        return plugin.load(), plugin.kind
    if ":" not in name:
        raise PluginNotFoundError(f"There is no plugin {name}")
    found = _load(name, name)
    kind = _kind_of(found)
    if kind is None:
        raise PluginNotLoadedError(f"Class {name} extends no class of Connect")
    return found, kind


def plugin_named(name: str, *kinds: PluginKind) -> Plugin | None:
    """Returns the plugin that has the name or alias, or None. `module:Class` has no name."""
    for kind in kinds or PluginKind:
        plugin = _plugins_by_name(kind).get(name)
        if plugin is not None:
            return plugin
    return None


def class_name(name: str, *kinds: PluginKind) -> str:
    """Returns the name that the REST API shows for a name or an alias."""
    plugin = plugin_named(name, *kinds)
    return name if plugin is None else plugin.name


def all_plugins(*kinds: PluginKind) -> list[Plugin]:
    """Returns the plugins of some kinds, or all, sorted by kind and name as Connect lists them."""
    return [
        plugin
        for kind in kinds or PluginKind
        for plugin in sorted(_plugins(kind), key=lambda plugin: plugin.name)
    ]


def _find(name: str, kinds: tuple[PluginKind, ...], classes: tuple[type, ...]) -> Any:
    name = name.strip()
    plugin = plugin_named(name, *kinds)
    if plugin is not None:
        found = plugin.load()
    elif ":" in name:
        found = _load(name, name)
    else:
        raise PluginNotFoundError(_not_found(name, kinds))
    if not issubclass(found, classes):
        interface = _INTERFACES[kinds[0]]
        raise PluginNotLoadedError(f"Class {name} does not implement the {interface} interface")
    return found


def _load(target: str, name: str) -> type:
    module, _, attribute = target.partition(":")
    try:
        found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise _not_loaded(name, f"there is no module {error.name}") from error
    except AttributeError as error:
        raise _not_loaded(name, str(error)) from error
    except Exception as error:  # whatever the module of a user raises
        reason = f"{type(error).__name__}: {error}"
        raise _not_loaded(name, reason) from error
    if isinstance(found, type):
        return found
    if callable(found):
        from barnabas.connect.transforms.function import transform_of

        return transform_of(found)
    raise _not_loaded(name, "it is not a class")


def _not_loaded(name: str, reason: str) -> PluginNotLoadedError:
    return PluginNotLoadedError(f"Failed to load class {name}: {reason}")


def _not_found(name: str, kinds: tuple[PluginKind, ...]) -> str:
    interface = _INTERFACES[kinds[0]]
    plugins = all_plugins(*kinds)
    available = ", ".join(dict.fromkeys(plugin.name for plugin in plugins))
    noun = "connectors" if kinds == CONNECTOR_KINDS else f"{kinds[0].replace('_', ' ')}s"
    advice = _advice(name, plugins) if kinds == CONNECTOR_KINDS else _nearest(name, plugins)
    return (
        f"Failed to find any class that implements {interface} and which name matches {name}, "
        f"available {noun} are: {available}" + (f". {advice}" if advice else "")
    )


def _advice(name: str, plugins: list[Plugin]) -> str:
    lowered = name.lower()
    prefixes = [prefix for prefix in _ALTERNATIVES if lowered.startswith(prefix)]
    if prefixes:
        return _ALTERNATIVES[max(prefixes, key=len)]
    for word, system in _NO_CONNECTOR:
        if word in lowered:
            return (
                f"There is no connector for {system}: use connector.class=spark with a Spark "
                f"format, or a class of your own as module:Class"
            )
    return _nearest(name, plugins)


def _nearest(name: str, plugins: list[Plugin]) -> str:
    names = {each.lower(): each for plugin in plugins for each in plugin.names}
    simple = name.lower().rpartition(".")[2]
    for text in (name.lower(), simple):
        matches = difflib.get_close_matches(text, names, n=1, cutoff=0.7)
        if matches:
            return f"Did you mean {names[matches[0]]}?"
    return ""


# Tables


@cache
def _plugins_by_name(kind: PluginKind) -> Mapping[str, Plugin]:
    """An alias that two plugins share belongs to neither, as in Kafka."""
    plugins = _plugins(kind)
    owners: dict[str, set[str]] = {}
    for plugin in plugins:
        for name in plugin.names:
            owners.setdefault(name, set()).add(plugin.target)
    full_names = {name: plugin for plugin in plugins for name in (plugin.name, *plugin.other_names)}
    aliases = {
        name: plugin
        for plugin in plugins
        for name in plugin.names
        if len(owners[name]) == 1 and name not in full_names
    }
    return aliases | full_names


@cache
def _plugins(kind: PluginKind) -> tuple[Plugin, ...]:
    from barnabas import __version__

    ours = [
        Plugin(name, kind, target, __version__, _OTHER_NAMES.get(name, ()))
        for name, target in _TARGETS[kind].items()
    ]
    return (*ours, *(plugin for plugin in _installed_plugins() if plugin.kind is kind))


@cache
def _installed_plugins() -> tuple[Plugin, ...]:
    """Returns the plugins of other packages. Only an import shows what kind they are."""
    plugins: list[Plugin] = []
    for entry_point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        try:
            found = _load(entry_point.value, entry_point.name)
        except PluginNotLoadedError as error:
            log.warning("A plugin of the group %s is left out: %s", ENTRY_POINT_GROUP, error)
            continue
        kind = _kind_of(found)
        if kind is None:
            log.warning("The plugin %s is left out: it extends no class of Connect", entry_point)
            continue
        version = getattr(found, "version", None)
        if version is None and entry_point.dist is not None:
            version = entry_point.dist.version
        plugins.append(Plugin(entry_point.name, kind, entry_point.value, version))
    return tuple(plugins)


def _kind_of(found: type) -> PluginKind | None:
    from barnabas.connect.connector import SinkConnector, SourceConnector
    from barnabas.connect.converters.converter import Converter
    from barnabas.connect.converters.headers import HeaderConverter
    from barnabas.connect.transforms.transform import Predicate, Transform

    kinds: Mapping[type, PluginKind] = {
        SourceConnector: PluginKind.SOURCE,
        SinkConnector: PluginKind.SINK,
        Converter: PluginKind.CONVERTER,
        HeaderConverter: PluginKind.HEADER_CONVERTER,
        Transform: PluginKind.TRANSFORM,
        Predicate: PluginKind.PREDICATE,
    }
    return next((kind for base, kind in kinds.items() if issubclass(found, base)), None)
