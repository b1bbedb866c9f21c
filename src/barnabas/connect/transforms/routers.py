"""RegexRouter and TimestampRouter: other topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, Importance
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.errors import DataError, InvalidConfigError
from barnabas.connect.transforms.columns import Failures, transformed
from barnabas.connect.transforms.java_regex import compile_java, replace_first
from barnabas.connect.transforms.simple_date_format import SimpleDateFormat
from barnabas.connect.transforms.transform import Transform, Transformed

if TYPE_CHECKING:
    import pyarrow as pa


def valid_regex(_: str, value: Any) -> str | None:
    try:
        compile_java(value or "")
    except InvalidConfigError as error:
        return f"Invalid regex: {error}"
    return None


class RegexRouter(Transform):
    """The topic becomes `replacement` if all of it matches `regex`."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "regex",
                ConfigType.STRING,
                doc="The regular expression that the whole topic must match, in Java's syntax.",
                importance=Importance.HIGH,
                validator=valid_regex,
            ),
            ConnectorSetting(
                "replacement",
                ConfigType.STRING,
                doc="The new topic. $1 stands for the first group of the regular expression.",
                importance=Importance.HIGH,
            ),
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._pattern = compile_java(self.settings["regex"])
        self._replacement: str = self.settings["replacement"]

    def apply(self, batch: ConnectBatch) -> Transformed:
        import pyarrow as pa
        import pyarrow.compute as pc

        failures = Failures(len(batch))
        topics = batch.topic.unique()
        routed = pa.array([self._route(topic) for topic in topics.to_pylist()], pa.string())
        if routed.null_count:
            self._add_errors(batch, topics.filter(routed.is_null()), failures)
        topic = routed.take(pc.index_in(batch.topic, value_set=topics))
        return transformed(replace(batch, topic=topic), failures)

    def _route(self, topic: str) -> str | None:
        """Returns the new topic; None if the replacement does not fit the regular expression."""
        if self._pattern.fullmatch(topic) is None:
            return topic
        try:
            return replace_first(self._pattern, self._replacement, topic)
        except DataError:
            return None

    def _add_errors(self, batch: ConnectBatch, topics: pa.StringArray, failures: Failures) -> None:
        import pyarrow.compute as pc

        try:
            replace_first(self._pattern, self._replacement, topics[0].as_py())
        except DataError as error:
            failures.add_all(pc.is_in(batch.topic, value_set=topics), error)


class TimestampRouter(Transform):
    """The topic gets the time of the record."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "topic.format",
                ConfigType.STRING,
                "${topic}-${timestamp}",
                "The new topic. ${topic} and ${timestamp} stand for those of the record.",
                Importance.HIGH,
            ),
            ConnectorSetting(
                "timestamp.format",
                ConfigType.STRING,
                "yyyyMMdd",
                "The pattern of the timestamp, as of Java's SimpleDateFormat.",
                Importance.HIGH,
            ),
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        pattern: str = self.settings["timestamp.format"]
        try:
            self._format = SimpleDateFormat(pattern)
        except ValueError as error:
            raise InvalidConfigError(f"{error} in timestamp.format {pattern}") from None
        self._texts = [
            part.split("${timestamp}") for part in self.settings["topic.format"].split("${topic}")
        ]

    def apply(self, batch: ConnectBatch) -> Transformed:
        import pyarrow as pa
        import pyarrow.compute as pc

        failures = Failures(len(batch))
        if batch.timestamp.null_count:
            for row in pc.indices_nonzero(batch.timestamp.is_null()).to_pylist():
                failures.add(row, DataError(_missing_timestamp(batch, row)))
        times = self._format.format(batch.timestamp)
        parts: list[pa.Array | str] = []
        for index, texts in enumerate(self._texts):
            if index:
                parts.append(batch.topic)
            for number, text in enumerate(texts):
                if number:
                    parts.append(times)
                parts.append(text)
        topic = pc.binary_join_element_wise(*parts, pa.repeat(pa.scalar(""), len(batch)))
        return transformed(replace(batch, topic=topic), failures)


def _missing_timestamp(batch: ConnectBatch, row: int) -> str:
    topic, partition, offset = batch.topic[row], batch.partition[row], batch.offset[row]
    return (
        f"Timestamp missing on record: topic='{topic}', kafkaPartition={partition.as_py()}, "
        f"kafkaOffset={offset.as_py()}"
    )
