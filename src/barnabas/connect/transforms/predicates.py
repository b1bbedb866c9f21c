"""Kafka's predicates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, all_of
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.transforms.columns import row_numbers
from barnabas.connect.transforms.java_regex import compile_java
from barnabas.connect.transforms.routers import valid_regex
from barnabas.connect.transforms.settings import non_empty_string
from barnabas.connect.transforms.transform import Predicate

if TYPE_CHECKING:
    import pyarrow as pa


class TopicNameMatches(Predicate):
    """The whole topic matches a regular expression."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "pattern",
                ConfigType.STRING,
                doc="The regular expression that the whole topic must match, in Java's syntax.",
                validator=all_of(non_empty_string, valid_regex),
            )
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._pattern = compile_java(self.settings["pattern"])

    def test(self, batch: ConnectBatch) -> pa.BooleanArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        topics = [topic for topic in batch.topic.unique().to_pylist() if topic is not None]
        matching = [topic for topic in topics if self._pattern.fullmatch(topic)]
        return pc.is_in(batch.topic, value_set=pa.array(matching, batch.topic.type))


class HasHeaderKey(Predicate):
    """The record has a header of a name."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "name",
                ConfigType.STRING,
                doc="The name of the header.",
                validator=non_empty_string,
            )
        )

    def test(self, batch: ConnectBatch) -> pa.BooleanArray:
        import pyarrow.compute as pc

        keys = pc.struct_field(batch.headers.flatten(), "key")
        has_name = pc.equal(keys, self.settings["name"])
        rows = pc.list_parent_indices(batch.headers).filter(has_name)
        return pc.is_in(row_numbers(len(batch)), value_set=rows.unique())


class RecordIsTombstone(Predicate):
    """The value is null."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def test(self, batch: ConnectBatch) -> pa.BooleanArray:
        return batch.value.is_null()
