"""Plugins that tests use, found as `module:Class`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from barnabas.connect import (
    ConfigDef,
    ConfigType,
    ConfigValueInfo,
    ConnectBatch,
    ConnectorSetting,
    Converter,
    Importance,
    Predicate,
    SinkConnector,
    SinkWriter,
    SourceBatch,
    SourceConnector,
    Transform,
    Transformed,
    WriteContext,
    at_least,
)


class FileSink(SinkConnector):
    version = "7"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting("file", ConfigType.STRING, None, importance=Importance.HIGH),
            ConnectorSetting("password", ConfigType.PASSWORD, None),
        )

    def open(self, context: WriteContext) -> SinkWriter:
        raise NotImplementedError


class FileSource(SourceConnector):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting("topic", ConfigType.STRING, importance=Importance.HIGH),
            ConnectorSetting(
                "batch.size", ConfigType.INT, 2000, validator=at_least(1), group="Reading"
            ),
            ConnectorSetting("format", ConfigType.STRING, "text", group="Reading"),
        )

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValueInfo]:
        values = super().validate(config)
        if config.get("topic") == "forbidden":
            values[0].errors.append("That topic is forbidden")
        return values

    def partitions(self) -> Sequence[Mapping[str, Any]]:
        return []

    def read(
        self, partition: Mapping[str, Any], position: Mapping[str, Any] | None, max_rows: int
    ) -> Iterator[SourceBatch]:
        return iter(())


class Failing(FileSource):
    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValueInfo]:
        raise OSError("the target is down")


class TextConverter(Converter):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(ConnectorSetting("encoding", ConfigType.STRING, "UTF-8", group="Text"))

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None: ...

    def to_connect(self, topic: str, payloads: Any) -> Any: ...

    def from_connect(self, topic: str, schema: Any, values: Any) -> Any: ...


class Rename(Transform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting("limit", ConfigType.INT, 3, importance=Importance.LOW),
            ConnectorSetting("to", ConfigType.STRING, importance=Importance.HIGH),
        )

    def apply(self, batch: ConnectBatch) -> Transformed:
        raise NotImplementedError


class IsBig(Predicate):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(ConnectorSetting("size", ConfigType.INT))

    def test(self, batch: ConnectBatch) -> Any: ...


NOT_A_CLASS = 1
MODULE = __name__
