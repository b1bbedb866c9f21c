"""The settings of the object store sinks, with the names of Confluent's S3 sink."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from barnabas.connect.config_def import (
    REQUIRED,
    ConfigDef,
    ConfigType,
    ConnectorSetting,
    Importance,
    Validator,
    at_least,
    between,
    not_empty,
    one_of,
)

FORMAT_CLASS = "format.class"
FLUSH_SIZE = "flush.size"
ROTATE_INTERVAL = "rotate.interval.ms"
ROTATE_SCHEDULE = "rotate.schedule.interval.ms"
PARTITIONER_CLASS = "partitioner.class"
PARTITION_FIELDS = "partition.field.name"
PARTITION_DURATION = "partition.duration.ms"
PATH_FORMAT = "path.format"
TIMEZONE = "timezone"
TIMESTAMP_EXTRACTOR = "timestamp.extractor"
TIMESTAMP_FIELD = "timestamp.field"
NULL_VALUES = "behavior.on.null.values"

FORMATS = ("parquet", "avro", "json", "bytearray")
PARTITIONERS = ("default", "field", "time", "daily", "hourly")
EXTRACTORS = ("wallclock", "record", "recordfield")

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def short_name(text: str, suffix: str = "") -> str:
    """Returns `parquet` for `io.confluent.connect.s3.format.parquet.ParquetFormat`."""
    name = text.strip().rpartition(".")[2].lower().removesuffix(suffix)
    return name.removesuffix("based")  # TimeBasedPartitioner


def _class_of(choices: tuple[str, ...], suffix: str) -> Validator:
    def validate(_: str, value: Any) -> str | None:
        if value is not None and short_name(value, suffix) in choices:
            return None
        return f"there are {', '.join(choices)}, and Confluent's classes of these names"

    return validate


def _timezone(_: str, value: Any) -> str | None:
    if not value:
        return None
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        return "there is no such time zone; use a name such as UTC or Europe/Prague"
    return None


def _only_none(_: str, value: Any) -> str | None:
    if str(value).upper() == "NONE":
        return None
    return "only NONE is supported: a record with another schema begins another file"


def _false(_: str, value: Any) -> str | None:
    return "is not supported" if value else None


COMMON = ConfigDef(
    ConnectorSetting(
        FORMAT_CLASS,
        ConfigType.STRING,
        importance=Importance.HIGH,
        validator=_class_of(FORMATS, "format"),
        doc="The format of the files: parquet, avro, json (a line for each record) or bytearray.",
    ),
    ConnectorSetting(
        FLUSH_SIZE,
        ConfigType.INT,
        importance=Importance.HIGH,
        validator=at_least(1),
        doc="How many records of a topic partition to write before its files are complete.",
    ),
    ConnectorSetting(
        ROTATE_INTERVAL,
        ConfigType.LONG,
        -1,
        importance=Importance.HIGH,
        doc="The largest difference of the timestamps in a file, and how long fewer records than "
        "flush.size are waited for. Needs a partitioner by time.",
    ),
    ConnectorSetting(
        ROTATE_SCHEDULE,
        ConfigType.LONG,
        -1,
        doc="After how much time fewer records than flush.size are written.",
    ),
    ConnectorSetting(
        "topics.dir",
        ConfigType.STRING,
        "topics",
        importance=Importance.HIGH,
        doc="The directory of all files.",
    ),
    ConnectorSetting(
        "directory.delim", ConfigType.STRING, "/", validator=not_empty, doc="Between directories."
    ),
    ConnectorSetting(
        "file.delim",
        ConfigType.STRING,
        "+",
        validator=not_empty,
        doc="Between topic, partition and offset in the name of a file.",
    ),
    ConnectorSetting(
        "filename.offset.zero.pad.width",
        ConfigType.INT,
        10,
        importance=Importance.LOW,
        validator=between(0, 20),
        doc="How many digits the offset in the name of a file has at least.",
    ),
    ConnectorSetting(
        "schema.compatibility",
        ConfigType.STRING,
        "NONE",
        validator=_only_none,
        doc="How records of different schemas share a file: not at all.",
    ),
    ConnectorSetting(
        "avro.codec",
        ConfigType.STRING,
        "null",
        importance=Importance.LOW,
        validator=one_of("null", "deflate", "snappy", "bzip2"),
        doc="The compression of Avro files.",
    ),
    ConnectorSetting(
        "parquet.codec",
        ConfigType.STRING,
        "snappy",
        importance=Importance.LOW,
        validator=one_of("none", "snappy", "gzip", "brotli", "lz4", "zstd"),
        doc="The compression of Parquet files.",
    ),
    ConnectorSetting(
        "s3.compression.type",
        ConfigType.STRING,
        "none",
        importance=Importance.LOW,
        validator=one_of("none", "gzip"),
        doc="The compression of JSON and bytearray files.",
    ),
    ConnectorSetting(
        "s3.compression.level",
        ConfigType.INT,
        -1,
        importance=Importance.LOW,
        validator=between(-1, 9),
        doc="The level of gzip; -1 is its default.",
    ),
    ConnectorSetting(
        "json.decimal.format",
        ConfigType.STRING,
        "BASE64",
        validator=one_of("BASE64", "NUMERIC", ignore_case=True),
        doc="How decimals are written in JSON.",
    ),
    ConnectorSetting(
        "format.bytearray.extension",
        ConfigType.STRING,
        ".bin",
        importance=Importance.LOW,
        doc="The extension of bytearray files.",
    ),
    ConnectorSetting(
        "format.bytearray.separator",
        ConfigType.STRING,
        "\n",
        importance=Importance.LOW,
        doc="What follows each record in a bytearray file.",
    ),
    ConnectorSetting(
        PARTITIONER_CLASS,
        ConfigType.STRING,
        "default",
        importance=Importance.HIGH,
        validator=_class_of(PARTITIONERS, "partitioner"),
        doc="The directories below that of a topic: default (of the Kafka partition), field, time, "
        "daily or hourly.",
    ),
    ConnectorSetting(
        PARTITION_FIELDS,
        ConfigType.LIST,
        [],
        doc="The fields that the field partitioner makes directories of.",
    ),
    ConnectorSetting(
        PARTITION_DURATION,
        ConfigType.LONG,
        -1,
        doc="How much time has the same directory, for the time partitioner.",
    ),
    ConnectorSetting(
        PATH_FORMAT,
        ConfigType.STRING,
        "",
        doc="The directories of a time, such as 'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH.",
    ),
    ConnectorSetting(
        "locale",
        ConfigType.STRING,
        "",
        importance=Importance.LOW,
        doc="Not used: paths are made of numbers.",
    ),
    ConnectorSetting(
        TIMEZONE, ConfigType.STRING, "UTC", validator=_timezone, doc="The time zone of directories."
    ),
    ConnectorSetting(
        TIMESTAMP_EXTRACTOR,
        ConfigType.STRING,
        "Wallclock",
        validator=_class_of(EXTRACTORS, "timestampextractor"),
        doc="The time of a record: Wallclock, Record (its timestamp) or RecordField.",
    ),
    ConnectorSetting(
        TIMESTAMP_FIELD,
        ConfigType.STRING,
        "timestamp",
        doc="The field, or path of fields, that RecordField takes the time from.",
    ),
    ConnectorSetting(
        NULL_VALUES,
        ConfigType.STRING,
        "fail",
        importance=Importance.LOW,
        validator=one_of("fail", "ignore", ignore_case=True),
        doc="What happens to records without a value.",
    ),
    ConnectorSetting(
        "store.kafka.keys",
        ConfigType.BOOLEAN,
        False,
        importance=Importance.LOW,
        validator=_false,
        doc="Files of keys: not supported.",
    ),
    ConnectorSetting(
        "store.kafka.headers",
        ConfigType.BOOLEAN,
        False,
        importance=Importance.LOW,
        validator=_false,
        doc="Files of headers: not supported.",
    ),
)

LOCAL = ConfigDef(
    ConnectorSetting(
        "store.url",
        ConfigType.STRING,
        REQUIRED,
        importance=Importance.HIGH,
        validator=not_empty,
        doc="Where the files are: a directory, file:///directory, or s3://bucket/prefix.",
    ),
)

S3 = ConfigDef(
    ConnectorSetting(
        "s3.bucket.name",
        ConfigType.STRING,
        importance=Importance.HIGH,
        validator=not_empty,
        doc="The bucket.",
    ),
    ConnectorSetting("s3.region", ConfigType.STRING, "us-west-2", doc="The region of the bucket."),
    ConnectorSetting(
        "store.url",
        ConfigType.STRING,
        None,
        doc="The address of a service that speaks S3's protocol, if it is not Amazon's.",
    ),
)

S3_ACCESS = ConfigDef(
    ConnectorSetting(
        "aws.access.key.id",
        ConfigType.STRING,
        "",
        doc="Without it, the usual environment variables, files and roles of AWS are used.",
    ),
    ConnectorSetting(
        "aws.secret.access.key", ConfigType.PASSWORD, "", doc="Belongs to the access key."
    ),
    ConnectorSetting(
        "s3.path.style.access.enabled",
        ConfigType.BOOLEAN,
        True,
        doc="Whether the bucket is in the path of a request, and not in the name of the host.",
    ),
    ConnectorSetting(
        "s3.part.retries",
        ConfigType.INT,
        3,
        validator=at_least(0),
        doc="How often a request is repeated.",
    ),
    ConnectorSetting(
        "s3.proxy.url",
        ConfigType.STRING,
        "",
        importance=Importance.LOW,
        doc="The address of an HTTP proxy.",
    ),
    ConnectorSetting(
        "s3.endpoint.url",
        ConfigType.STRING,
        None,
        doc="The address of a service that speaks S3's protocol, for ObjectStoreSink with s3://.",
    ),
)
