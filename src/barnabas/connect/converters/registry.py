"""The common part of converters whose payloads start with the id of a schema in a registry.

Each row is read with the schema that it was written with, so rows of several schemas are several
runs. Clients and decoders are created once for each schema.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from barnabas.columns import DecodedColumn
from barnabas.columns.language import SchemaSource
from barnabas.columns.schema_ids import NO_SCHEMA_ID, read_schema_ids
from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, Importance
from barnabas.connect.converters.converter import (
    Conversion,
    Converted,
    ConvertedBytes,
    Converter,
    RowError,
)
from barnabas.connect.converters.runs import conversion_of, nulls_run, rows_of_groups
from barnabas.connect.data.defaults import (
    missing_value_error,
    rows_with_missing_values,
    with_defaults,
)
from barnabas.connect.data.schema import ConnectSchema, schema_from_arrow
from barnabas.connect.errors import ConnectError, DataError, InvalidConfigError, RetriableError
from barnabas.schemas import SchemaError
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.schema_registry import RegisteredSchema, SchemaRegistryClient
    from barnabas.schema_registry import Schema as RegistrySchema

_NOT_FOUND = 404
_FIRST_SERVER_ERROR = 500
_TOO_MANY_REQUESTS = 429
_MAX_CODECS = 1000
_ID_BITS = 32

_STRATEGY_PACKAGES = (
    "io.confluent.kafka.serializers.subject.",
    "io.confluent.kafka.serializers.subject.strategy.",
)
_STRATEGIES = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")


class PayloadReader(Protocol):
    """Reads payloads of one schema."""

    @property
    def schema(self) -> ConnectSchema: ...

    def read(self, payloads: pa.BinaryArray) -> DecodedColumn:
        """Returns values in the Arrow type of the schema. Payloads start with the id."""
        ...


class PayloadWriter(Protocol):
    """Writes values of one schema, after its id."""

    def write(self, values: pa.Array) -> pa.BinaryArray:
        """Raises ValueError if a value cannot be written."""
        ...


@dataclass(slots=True, frozen=True)
class DeclaredSchema:
    """A schema as it is registered."""

    source: SchemaSource
    record_name: str | None
    """The name of the record, for subjects that are named after it."""


class RegistryConverter(Converter):
    """Subclasses implement a schema language."""

    language: ClassVar[str]
    """The name in the registry."""
    title: ClassVar[str]
    """The name in error messages."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _registry_settings()

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        self.parsed = self.config_def().parse(settings)
        self._client_settings = _client_settings(settings, self.parsed)
        self._is_key = is_key
        strategy = self.parsed[f"{'key' if is_key else 'value'}.subject.name.strategy"]
        self._strategy = _strategy(strategy)
        self._client: SchemaRegistryClient | None = None
        self._readers: OrderedDict[int, PayloadReader | DataError] = OrderedDict()
        self._writers: OrderedDict[tuple[str, ConnectSchema], PayloadWriter] = OrderedDict()

    # What a language does

    @abstractmethod
    def reader(self, source: SchemaSource, variant: int) -> PayloadReader:
        """Returns a reader of payloads of a schema. Raises DataError or SchemaError."""

    def variants(self, payloads: pa.BinaryArray) -> pa.Array | None:
        """Returns which type of its schema each payload has, as a small number.

        None stands for zero in all of them. Only Protobuf's schemas have several types.
        """
        return None

    @abstractmethod
    def declare(self, schema: ConnectSchema, topic: str) -> DeclaredSchema:
        """Returns the schema in the language. Raises DataError if it has no such type."""

    @abstractmethod
    def describe(self, source: SchemaSource) -> DeclaredSchema:
        """Returns a schema of the registry with the name of its record."""

    @abstractmethod
    def writer(
        self, schema: ConnectSchema, declared: DeclaredSchema, schema_id: int
    ) -> PayloadWriter:
        """Returns a writer. Raises DataError or SchemaError if the schemas do not fit."""

    # Reading

    def to_connect(self, topic: str, payloads: pa.BinaryArray) -> Conversion:
        import pyarrow as pa
        import pyarrow.compute as pc

        if payloads.null_count == len(payloads):
            return nulls_run(len(payloads))
        keys = self._reader_keys(payloads)
        present: list[int] = pc.unique(keys.drop_null()).to_pylist()
        if len(present) == 1:
            return self._read_single(topic, present[0], payloads)
        groups = pc.index_in(keys, pa.array(present, pa.int64())).fill_null(-1)
        group_numbers = view(groups.buffers()[1], "i")[: len(keys)]
        parts: list[tuple[memoryview, Conversion]] = []
        errors: list[RowError] = []
        for group, rows in rows_of_groups(group_numbers, len(present)):
            part = self._read_single(topic, present[group], payloads.take(_indices(rows)))
            errors += [RowError(rows[each.row], each.error) for each in part.errors]
            if not _has_failed_entirely(part):
                parts.append((rows, part))
        return conversion_of(group_numbers, parts, sorted(errors, key=lambda each: each.row))

    def _reader_keys(self, payloads: pa.BinaryArray) -> pa.Int64Array:
        """Returns what selects the reader of each payload: schema id and variant, in one number."""
        import pyarrow.compute as pc

        ids = read_schema_ids(payloads)
        variants = self.variants(payloads)
        if variants is None:
            return ids
        is_framed = pc.not_equal(ids, NO_SCHEMA_ID)
        return pc.if_else(is_framed, pc.add(ids, pc.multiply(variants, 1 << _ID_BITS)), ids)

    def _read_single(self, topic: str, key: int, payloads: pa.BinaryArray) -> Conversion:
        """Reads payloads of one schema."""
        try:
            reader = self._reader(topic, key)
        except DataError as error:
            rows = payloads.is_valid().to_pylist()
            errors = [RowError(row, error) for row, is_valid in enumerate(rows) if is_valid]
            return Conversion(nulls_run(len(payloads)).runs, errors)
        values, reasons = _read_rows(reader, payloads)
        return Conversion(
            [Converted(0, reader.schema, values)],
            [RowError(row, self._unreadable(topic, reason)) for row, reason in reasons.items()],
        )

    def _reader(self, topic: str, key: int) -> PayloadReader:
        if key == NO_SCHEMA_ID:
            raise self._unreadable(topic, "Unknown magic byte!")
        variant, schema_id = divmod(key, 1 << _ID_BITS)
        cached = self._readers.get(key)
        if cached is None:
            source = self._source(topic, schema_id)
            try:
                cached = self.reader(source, variant)
            except (SchemaError, DataError) as error:
                cached = self._unreadable(topic, f"Schema {schema_id} cannot be used: {error}")
            self._readers[key] = cached
            if len(self._readers) > _MAX_CODECS:
                self._readers.popitem(last=False)
        if isinstance(cached, DataError):
            raise cached
        return cached

    def _source(self, topic: str, schema_id: int) -> SchemaSource:
        from barnabas.schema_registry import SchemaRegistryError
        from barnabas.schema_registry.client.client import fetch_referenced_texts

        try:
            schema = self._registry().get_schema(schema_id, self._context_subject(topic))
            assert schema.schema_str is not None
            if (schema.schema_type or "AVRO") != self.language:
                raise self._unreadable(
                    topic, f"Schema {schema_id} is {schema.schema_type}, not {self.language}"
                )
            return SchemaSource(schema.schema_str, fetch_referenced_texts(schema, self._registry()))
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                raise self._unreadable(
                    topic, f"Error retrieving {self.title} schema for id {schema_id}: {error}"
                ) from error
            raise _registry_error(error) from error

    def _context_subject(self, topic: str) -> str | None:
        """Returns the subject that selects the context of an id, if it has a context."""
        return f"{topic}-{self._suffix}" if self._strategy == _STRATEGIES[0] else None

    def _unreadable(self, topic: str, reason: str) -> DataError:
        return DataError(f"Failed to deserialize data for topic {topic} to {self.title}: {reason}")

    # Writing

    def from_connect(
        self, topic: str, schema: ConnectSchema | None, values: pa.Array
    ) -> ConvertedBytes:
        import pyarrow as pa

        count = len(values)
        if values.null_count == count:
            return ConvertedBytes(pa.nulls(count, pa.binary()))
        if schema is None:
            schema = schema_from_arrow(values.type)
        values = with_defaults(_in_declared_type(values, schema), schema)
        missing = rows_with_missing_values(values, schema)
        errors = [RowError(row, missing_value_error(path)) for row, path in missing.items()]
        if missing:
            values = _without_rows(values, missing)
        writer = self._writer(topic, schema)
        payloads, failures = write_rows(writer.write, values)
        errors += [
            RowError(row, self._unwritable(topic, reason)) for row, reason in failures.items()
        ]
        return ConvertedBytes(payloads, sorted(errors, key=lambda each: each.row))

    def _writer(self, topic: str, schema: ConnectSchema) -> PayloadWriter:
        key = topic if self._strategy != _STRATEGIES[1] else "", schema
        writer = self._writers.get(key)
        if writer is None:
            try:
                writer = self._new_writer(topic, schema)
            except SchemaError as error:
                raise self._unwritable(topic, str(error)) from error
            self._writers[key] = writer
            if len(self._writers) > _MAX_CODECS:
                self._writers.popitem(last=False)
        return writer

    def _new_writer(self, topic: str, schema: ConnectSchema) -> PayloadWriter:
        from barnabas.schema_registry import Schema as NewSchema
        from barnabas.schema_registry import SchemaRegistryError

        declared = self.declare(schema, topic)
        subject = self._subject(topic, declared.record_name)
        wanted = NewSchema(declared.source.text, self.language)
        normalizes = self.parsed["normalize.schemas"]
        client = self._registry()
        try:
            if self.parsed["auto.register.schemas"]:
                schema_id = client.register_schema(subject, wanted, normalizes)
            elif self.parsed["use.latest.version"]:
                latest = client.get_latest_version(subject)
                assert latest.schema_id is not None
                schema_id = latest.schema_id
                declared = self.describe(self._source_of(latest))
            else:
                found = client.lookup_schema(subject, wanted, normalizes)
                assert found.schema_id is not None
                schema_id = found.schema_id
        except SchemaRegistryError as error:
            if _is_retriable(error):
                raise _registry_error(error) from error
            raise self._unwritable(
                topic, f"Error registering {self.title} schema of subject {subject}: {error}"
            ) from error
        return self.writer(schema, declared, schema_id)

    def _source_of(self, registered: RegisteredSchema) -> SchemaSource:
        from barnabas.schema_registry.client.client import fetch_referenced_texts

        schema: RegistrySchema = registered.schema
        assert schema.schema_str is not None
        return SchemaSource(schema.schema_str, fetch_referenced_texts(schema, self._registry()))

    def _subject(self, topic: str, record_name: str | None) -> str:
        if self._strategy == _STRATEGIES[0]:
            return f"{topic}-{self._suffix}"
        if record_name is None:
            raise DataError(
                f"{self._strategy} needs the name of a record, which the schema does not have"
            )
        return record_name if self._strategy == _STRATEGIES[1] else f"{topic}-{record_name}"

    @property
    def _suffix(self) -> str:
        return "key" if self._is_key else "value"

    def _unwritable(self, topic: str, reason: str) -> DataError:
        return DataError(f"Failed to serialize {self.title} data from topic {topic} : {reason}")

    def _registry(self) -> SchemaRegistryClient:
        if self._client is None:
            from barnabas.schema_registry import SchemaRegistryClient

            self._client = SchemaRegistryClient(self._client_settings)
        return self._client


def write_rows(
    write: Callable[[pa.Array], pa.BinaryArray], values: pa.Array
) -> tuple[pa.BinaryArray, dict[int, str]]:
    """Writes all rows. Returns the payloads, null for rows that failed, and the reasons by row."""
    import pyarrow as pa

    def write_part(part: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        return write(part), {}

    return _in_parts(write_part, values, pa.binary())


def _read_rows(reader: PayloadReader, payloads: pa.BinaryArray) -> tuple[pa.Array, dict[int, str]]:
    """Reads all rows. Returns the values, null for rows that failed, and the reasons by row."""

    def read_part(part: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        import pyarrow.compute as pc

        decoded = reader.read(part)
        if decoded.reasons is None:
            return decoded.values, {}
        rows = pc.indices_nonzero(decoded.reasons.is_valid()).to_pylist()
        return decoded.values, {row: decoded.reasons[row].as_py() for row in rows}

    return _in_parts(read_part, payloads, reader.schema.arrow_type())


def _in_parts(
    convert: Callable[[pa.Array], tuple[pa.Array, dict[int, str]]],
    column: pa.Array,
    arrow_type: pa.DataType,
) -> tuple[pa.Array, dict[int, str]]:
    """Converts a column; halves it if it has rows that cannot be converted, to find them."""
    import pyarrow as pa

    failures: dict[int, str] = {}
    parts: list[pa.Array] = []

    def convert_part(part: pa.Array, start: int) -> None:
        try:
            values, reasons = convert(part)
            parts.append(values)
            failures.update({start + row: reason for row, reason in reasons.items()})
            return
        except ValueError as error:  # Arrow's errors are ValueErrors
            if len(part) == 1:
                failures[start] = str(error)
                parts.append(pa.nulls(1, arrow_type))
                return
        middle = len(part) // 2
        convert_part(part[:middle], start)
        convert_part(part[middle:], start + middle)

    convert_part(column, 0)
    return (parts[0] if len(parts) == 1 else pa.concat_arrays(parts)), failures


def _indices(rows: memoryview) -> pa.Array:
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int32(), len(rows), [None, pa.py_buffer(rows)])


def _has_failed_entirely(part: Conversion) -> bool:
    return all(run.schema is None for run in part.runs)


def _in_declared_type(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    from barnabas.connect.converters.json_writers import as_declared

    return as_declared(values, schema)


def _without_rows(values: pa.Array, rows: Mapping[int, str]) -> pa.Array:
    """Returns the values with nulls in these rows."""
    import pyarrow as pa

    indices = [None if row in rows else row for row in range(len(values))]
    return values.take(pa.array(indices, pa.int64()))


def _is_retriable(error: Exception) -> bool:
    status = getattr(error, "http_status_code", 0)
    return status == 0 or status == _TOO_MANY_REQUESTS or status >= _FIRST_SERVER_ERROR


def _registry_error(error: Exception) -> ConnectError:
    kind = RetriableError if _is_retriable(error) else ConnectError
    return kind(f"The schema registry does not respond as expected: {error}")


def _strategy(name: str) -> str:
    short = name
    for package in _STRATEGY_PACKAGES:
        short = short.removeprefix(package)
    if short not in _STRATEGIES:
        raise InvalidConfigError(
            f"Invalid value {name} for a subject name strategy: use one of {', '.join(_STRATEGIES)}"
        )
    return short


def _client_settings(
    settings: Mapping[str, str], parsed: Mapping[str, object]
) -> dict[str, object]:
    """Returns the settings of the registry's client, from the names that Java's has."""
    client: dict[str, object] = {"url": ",".join(map(str, _list(parsed["schema.registry.url"])))}
    user = parsed["basic.auth.user.info"] or parsed["schema.registry.basic.auth.user.info"]
    if parsed["basic.auth.credentials.source"] == "USER_INFO" and user:
        client["basic.auth.user.info"] = user
    for name, value in settings.items():
        short = name.removeprefix("schema.registry.")
        if short.startswith("bearer.auth.") or short in _PEM_SETTINGS:
            client[_PEM_SETTINGS.get(short, short)] = value
    if "bearer.auth.token" in client and "bearer.auth.credentials.source" not in client:
        client["bearer.auth.credentials.source"] = "STATIC_TOKEN"
    return client


_PEM_SETTINGS = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.ca.location": "ssl.ca.location",
    "ssl.certificate.location": "ssl.certificate.location",
    "ssl.key.location": "ssl.key.location",
    "ssl.key.password": "ssl.key.password",
}
"""The client reads certificates in the format PEM."""


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _one_of_sources(name: str, value: object) -> str | None:
    if value in ("URL", "USER_INFO"):
        return None
    return "It must be URL or USER_INFO"


def _registry_settings() -> ConfigDef:
    strategy = f"{_STRATEGY_PACKAGES[0]}{_STRATEGIES[0]}"
    return ConfigDef(
        ConnectorSetting(
            "schema.registry.url",
            ConfigType.LIST,
            doc="The addresses of the schema registry, separated by commas.",
            importance=Importance.HIGH,
        ),
        ConnectorSetting(
            "basic.auth.credentials.source",
            ConfigType.STRING,
            "URL",
            "Where user and password of the registry are: in its URL, or USER_INFO.",
            Importance.MEDIUM,
            _one_of_sources,
        ),
        ConnectorSetting(
            "basic.auth.user.info",
            ConfigType.PASSWORD,
            "",
            "User and password of the registry, as user:password.",
        ),
        ConnectorSetting(
            "schema.registry.basic.auth.user.info",
            ConfigType.PASSWORD,
            "",
            "The older name of basic.auth.user.info.",
        ),
        ConnectorSetting(
            "auto.register.schemas",
            ConfigType.BOOLEAN,
            True,
            "Whether schemas that the registry does not have are registered.",
        ),
        ConnectorSetting(
            "use.latest.version",
            ConfigType.BOOLEAN,
            False,
            "Whether the latest schema of the subject is used, if schemas are not registered.",
            Importance.LOW,
        ),
        ConnectorSetting(
            "normalize.schemas",
            ConfigType.BOOLEAN,
            False,
            "Whether schemas are normalized when they are registered or looked up.",
        ),
        ConnectorSetting(
            "key.subject.name.strategy",
            ConfigType.STRING,
            strategy,
            "How the subject of a key's schema is named.",
        ),
        ConnectorSetting(
            "value.subject.name.strategy",
            ConfigType.STRING,
            strategy,
            "How the subject of a value's schema is named.",
        ),
    )
