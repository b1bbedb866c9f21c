"""kafka-console-producer: send lines of standard input as records."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import (
    BROKERS_MAY_CREATE,
    MissingTopicWarning,
    java_client_settings,
    warn_of_deprecated,
)
from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser
from barnabas.cli.operations.console_clients import close_producer, input_lines, send
from barnabas.cli.operations.lines import LineReader
from barnabas.cli.operations.settings import JAVA_PRODUCER_DEFAULTS, client_settings

_SETTINGS = {
    "batch_size": ("batch.size", "16384", "The maximum bytes of a batch."),
    "max_partition_memory_bytes": ("batch.size", None, "(Deprecated) The same."),
    "max_block_ms": ("max.block.ms", "60000", "How long to wait while the buffer is full."),
    "max_memory_bytes": ("buffer.memory", "33554432", "The buffer of records to send, in bytes."),
    "message_send_max_retries": ("retries", "3", "The number of retries."),
    "metadata_expiry_ms": ("metadata.max.age.ms", "300000", "When to refresh metadata."),
    "request_required_acks": ("acks", "-1", "Acknowledgements to wait for: 0, 1, or all."),
    "request_timeout_ms": ("request.timeout.ms", "1500", "How long to wait for a response."),
    "retry_backoff_ms": ("retry.backoff.ms", "100", "The backoff before a retry."),
    "socket_buffer_size": ("send.buffer.bytes", "102400", "The TCP send buffer."),
    "timeout": ("linger.ms", "1000", "How long a record waits for a batch."),
}
"""Options that set a producer setting: its name, default and help."""


_RENAMED = {
    "producer-property": "command-property",
    "property": "reader-property",
    "producer.config": "command-config",
    "max-partition-memory-bytes": "batch-size",
}


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(_with_codec(arguments))
    parser.require_options(args, "topic", "bootstrap-server")
    warn_of_deprecated(args, _RENAMED, parser.usage_error, "Warning: --{} is deprecated")
    return _run(args)


def _run(args: Namespace) -> int:
    """Returns 1 if a record was lost. Kafka's command exits with 0 then."""
    from barnabas import Producer

    pairs = [*args.property, *args.reader_property]
    line_reader = LineReader.from_properties(client_settings(args.reader_config, pairs))
    producer = Producer(_settings(args))
    lost = 0

    def on_delivery(error: Any, _message: Any) -> None:
        nonlocal lost
        if error is not None:
            lost += 1
            line = f"Error when sending message to topic {args.topic}: {error.str()}"
            print(line, file=sys.stderr)

    try:
        warn_if_missing = MissingTopicWarning(producer, args.topic, BROKERS_MAY_CREATE)
        for record in line_reader.records(input_lines()):
            send(producer, args.topic, record, on_delivery)
            warn_if_missing()
            if args.sync:
                producer.flush()
        producer.flush()
    finally:
        close_producer(producer)
    return 1 if lost else 0


def _with_codec(arguments: Sequence[str]) -> list[str]:
    """Makes `--compression-codec` without a value mean gzip."""
    words = list(arguments)
    for at, word in enumerate(words):
        alone = at + 1 == len(words) or words[at + 1].startswith("-")
        if word == "--compression-codec" and alone:
            words[at] = "--compression-codec=gzip"
    return words


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-console-producer",
        "This tool helps to read data from standard input and publish it to Kafka.",
    )
    parser.add_value("--topic", "topic", "REQUIRED: The topic to produce to.")
    parser.add_value("--bootstrap-server", "host:port,...", "REQUIRED: The brokers to connect to.")
    parser.add_value("--command-config", "file", "A file of settings.", type=Path)
    parser.add_value("--producer.config", "file", "(DEPRECATED) The same.", dest="producer_config")
    pairs = "A producer setting, which overrides the file; can be repeated."
    parser.add_value("--command-property", "name=value", pairs, action="append", default=[])
    old = "(DEPRECATED) The same."
    parser.add_value("--producer-property", "name=value", old, action="append", default=[])
    reader = (
        "How lines are read: parse.key, key.separator, parse.headers, headers.delimiter,"
        " headers.separator, headers.key.separator, null.marker, ignore.error."
    )
    parser.add_value("--reader-property", "name=value", reader, action="append", default=[])
    parser.add_value("--property", "name=value", old, action="append", default=[])
    parser.add_value("--reader-config", "file", "A file of such properties.", type=Path)
    parser.add_value("--line-reader", "class", "Ignored: lines are records.")
    parser.add_value("--compression-codec", "codec", "none, gzip (alone), snappy, lz4 or zstd.")
    parser.add_flag("--sync", "Send one record at a time.")
    for name, (setting, _, help_text) in _SETTINGS.items():
        parser.add_value(f"--{name.replace('_', '-')}", setting, help_text)
    return parser


def _settings(args: Namespace) -> dict[str, Any]:
    """An option overrides a file or a property."""
    defaults = {setting: default for setting, default, _ in _SETTINGS.values() if default}
    settings = java_client_settings(
        args.command_config or args.producer_config,
        [*args.producer_property, *args.command_property],
        {**JAVA_PRODUCER_DEFAULTS, **defaults, "client.id": "console-producer"},
    )
    for name, (setting, _, _) in _SETTINGS.items():
        if getattr(args, name) is not None:
            settings[setting] = getattr(args, name)
    settings["bootstrap.servers"] = args.bootstrap_server
    if args.compression_codec:
        settings["compression.type"] = args.compression_codec
    return settings
