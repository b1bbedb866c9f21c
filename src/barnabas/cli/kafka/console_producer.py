"""kafka-console-producer: lines of standard input as records of a topic."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import client_settings, tell_renamed
from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.options import Flat
from barnabas.cli.operations.console_clients import close, send, typed
from barnabas.cli.operations.lines import Reading
from barnabas.cli.operations.settings import JAVA_PRODUCER, given
from barnabas.cli.signals import until_stopped

_SETTINGS = {
    "batch_size": ("batch.size", "16384", "The most bytes of a batch."),
    "max_partition_memory_bytes": ("batch.size", None, "(Deprecated) The same."),
    "max_block_ms": ("max.block.ms", "60000", "How long a full buffer may hold up a line."),
    "max_memory_bytes": ("buffer.memory", "33554432", "What may wait to be sent."),
    "message_send_max_retries": ("retries", "3", "How often to try again."),
    "metadata_expiry_ms": ("metadata.max.age.ms", "300000", "When to ask anew who leads."),
    "request_required_acks": ("acks", "-1", "Who must have a record: 0, 1, or all."),
    "request_timeout_ms": ("request.timeout.ms", "1500", "How long a broker may take."),
    "retry_backoff_ms": ("retry.backoff.ms", "100", "How long to wait before that."),
    "socket_buffer_size": ("send.buffer.bytes", "102400", "What TCP may buffer."),
    "timeout": ("linger.ms", "1000", "How long a record may wait for others."),
}
"""Options that are settings by another name."""


_RENAMED = {
    "producer-property": "command-property",
    "property": "reader-property",
    "producer.config": "command-config",
    "max-partition-memory-bytes": "batch-size",
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(_with_codec(sys.argv[1:] if arguments is None else arguments))
    options.require(chosen, "topic", "bootstrap-server")
    tell_renamed(chosen, _RENAMED, options.refuse, "Warning: --{} is deprecated")
    with reasons_to_stderr(), until_stopped():
        return _run(chosen)


def _run(chosen: Namespace) -> int:
    """1 if a record was lost; Kafka's would end with 0 as if nothing had happened."""
    from barnabas import Producer

    pairs = [*chosen.property, *chosen.reader_property]
    reading = Reading.of(given(chosen.reader_config, pairs))
    producer = Producer(_settings(chosen))
    lost = 0

    def delivered(error: Any, _message: Any) -> None:
        nonlocal lost
        if error is not None:
            lost += 1
            told = f"Error when sending message to topic {chosen.topic}: {error.str()}"
            print(told, file=sys.stderr)

    try:
        for record in reading.records(typed()):
            send(producer, chosen.topic, record, delivered)
            if chosen.sync:
                producer.flush()
        producer.flush()
    finally:
        close(producer)
    return 1 if lost else 0


def _with_codec(arguments: Sequence[str]) -> list[str]:
    """`--compression-codec` alone is gzip."""
    given_words = list(arguments)
    for at, word in enumerate(given_words):
        alone = at + 1 == len(given_words) or given_words[at + 1].startswith("-")
        if word == "--compression-codec" and alone:
            given_words[at] = "--compression-codec=gzip"
    return given_words


def _options() -> Flat:
    options = Flat(
        "kafka-console-producer",
        "This tool helps to read data from standard input and publish it to Kafka.",
    )
    options.value("--topic", "topic", "REQUIRED: The topic to produce to.")
    options.value("--bootstrap-server", "host:port,...", "REQUIRED: The brokers to connect to.")
    options.value("--command-config", "file", "A file of settings.", type=Path)
    options.value("--producer.config", "file", "(DEPRECATED) The same.", dest="producer_config")
    pairs = "A setting over those of the file; may be given many times."
    options.value("--command-property", "name=value", pairs, action="append", default=[])
    old = "(DEPRECATED) The same."
    options.value("--producer-property", "name=value", old, action="append", default=[])
    reader = (
        "How lines are read: parse.key, key.separator, parse.headers, headers.delimiter,"
        " headers.separator, headers.key.separator, null.marker, ignore.error."
    )
    options.value("--reader-property", "name=value", reader, action="append", default=[])
    options.value("--property", "name=value", old, action="append", default=[])
    options.value("--reader-config", "file", "A file of such properties.", type=Path)
    options.value("--line-reader", "class", "Accepted, and of no effect: lines are records.")
    options.value("--compression-codec", "codec", "none, gzip (alone), snappy, lz4 or zstd.")
    options.flag("--sync", "Send one record at a time.")
    for name, (setting, _, says) in _SETTINGS.items():
        options.value(f"--{name.replace('_', '-')}", setting, says)
    return options


def _settings(chosen: Namespace) -> dict[str, Any]:
    """What a file or a pair says stands, unless an option says it too."""
    defaults = {setting: default for setting, default, _ in _SETTINGS.values() if default}
    settings = client_settings(
        chosen.command_config or chosen.producer_config,
        [*chosen.producer_property, *chosen.command_property],
        {**JAVA_PRODUCER, **defaults, "client.id": "console-producer"},
    )
    for name, (setting, _, _) in _SETTINGS.items():
        if getattr(chosen, name) is not None:
            settings[setting] = getattr(chosen, name)
    settings["bootstrap.servers"] = chosen.bootstrap_server
    if chosen.compression_codec:
        settings["compression.type"] = chosen.compression_codec
    return settings
