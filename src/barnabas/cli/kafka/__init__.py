"""Kafka's own commands: its options, its output and its exit codes, in the release 4.3.

Each is a module with a `main`, installed as a script under Kafka's name, with and without `.sh`.
They import neither click nor rich, so that `kafka-topics --list` starts quickly.
"""

COMMANDS = {
    "connect-distributed": "connect_distributed",
    "connect-standalone": "connect_standalone",
    "kafka-acls": "acls",
    "kafka-broker-api-versions": "broker_api_versions",
    "kafka-client-metrics": "client_metrics",
    "kafka-cluster": "cluster",
    "kafka-configs": "configs",
    "kafka-console-consumer": "console_consumer",
    "kafka-console-producer": "console_producer",
    "kafka-consumer-groups": "consumer_groups",
    "kafka-consumer-perf-test": "consumer_perf_test",
    "kafka-delegation-tokens": "delegation_tokens",
    "kafka-delete-records": "delete_records",
    "kafka-dump-log": "dump_log",
    "kafka-e2e-latency": "e2e_latency",
    "kafka-features": "features",
    "kafka-get-offsets": "get_offsets",
    "kafka-groups": "groups",
    "kafka-leader-election": "leader_election",
    "kafka-log-dirs": "log_dirs",
    "kafka-metadata-quorum": "metadata_quorum",
    "kafka-metadata-shell": "metadata_shell",
    "kafka-producer-perf-test": "producer_perf_test",
    "kafka-reassign-partitions": "reassign_partitions",
    "kafka-server-start": "server_start",
    "kafka-server-stop": "server_stop",
    "kafka-storage": "storage",
    "kafka-topics": "topics",
    "kafka-transactions": "transactions",
    "kafka-verifiable-consumer": "verifiable_consumer",
    "kafka-verifiable-producer": "verifiable_producer",
}
"""The module of each command."""
