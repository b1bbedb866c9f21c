"""Kafka's own commands: its options, its output and its exit codes, in the release 4.3.

Each is a module with a `main`, and is installed as a script under Kafka's name for it, with and
without `.sh`. They say what to do to `barnabas.cli.work` and print what it answers; they import
neither click nor rich, so that `kafka-topics --list` is done before a JVM would have begun.
"""

COMMANDS = {
    "kafka-broker-api-versions": "broker_api_versions",
    "kafka-cluster": "cluster",
    "kafka-configs": "configs",
    "kafka-consumer-groups": "consumer_groups",
    "kafka-delete-records": "delete_records",
    "kafka-features": "features",
    "kafka-get-offsets": "get_offsets",
    "kafka-groups": "groups",
    "kafka-leader-election": "leader_election",
    "kafka-log-dirs": "log_dirs",
    "kafka-metadata-quorum": "metadata_quorum",
    "kafka-reassign-partitions": "reassign_partitions",
    "kafka-server-start": "server_start",
    "kafka-server-stop": "server_stop",
    "kafka-storage": "storage",
    "kafka-topics": "topics",
    "kafka-transactions": "transactions",
}
"""The module of each."""
