"""One or more valid command lines of every command, with placeholders for what users enter.

`<name>`, `<regex>`, `<number>`, `<file>` and `<pair>` stand for a value of that kind, `<broker>`
for the address of a broker, `<registry>` for a URL where no schema registry is. Tests replace them
by harmless values, and one by a hostile value.
"""

_ADMIN = "--bootstrap-server <broker> --command-config <file>"

KAFKA_LINES = (
    "connect-distributed <file> <name>",
    "connect-standalone <file> <file> <file>",
    f"kafka-acls {_ADMIN} --list --topic <name>",
    f"kafka-acls {_ADMIN} --add --allow-principal <name> --topic <name> --operation <name>",
    f"kafka-acls {_ADMIN} --remove --topic <name> --group <name> --allow-host <name>",
    f"kafka-broker-api-versions {_ADMIN}",
    f"kafka-client-metrics {_ADMIN} --alter --name <name> --metrics <name> --interval <number>",
    f"kafka-client-metrics {_ADMIN} --alter --name <name> --match <pair>",
    f"kafka-client-metrics {_ADMIN} --delete --name <name>",
    f"kafka-client-metrics {_ADMIN} --describe --name <name>",
    "kafka-cluster cluster-id --bootstrap-server <broker> --command-config <file>",
    "kafka-cluster unregister --bootstrap-server <broker> --id 9<number>",
    f"kafka-configs {_ADMIN} --describe --entity-type topics --entity-name <name>",
    f"kafka-configs {_ADMIN} --alter --entity-type topics --entity-name <name>"
    " --add-config <pair> --delete-config <name>",
    f"kafka-configs {_ADMIN} --alter --topic <name> --add-config-file <file>",
    "kafka-console-consumer --bootstrap-server <broker> --topic <name> --timeout-ms 1"
    " --max-messages <number> --command-config <file> --formatter-config <file>"
    " --formatter-property <pair> --command-property client.id=<name>",
    "kafka-console-consumer --bootstrap-server <broker> --include <regex> --timeout-ms 1",
    "kafka-console-consumer --bootstrap-server <broker> --topic <name> --partition <number>"
    " --offset <number> --timeout-ms 1",
    "kafka-console-producer --bootstrap-server <broker> --topic <name> --command-config <file>"
    " --reader-config <file> --reader-property <pair> --max-block-ms 100 --timeout <number>",
    f"kafka-consumer-groups {_ADMIN} --describe --group <name>",
    f"kafka-consumer-groups {_ADMIN} --list --state <name>",
    f"kafka-consumer-groups {_ADMIN} --reset-offsets --group <name> --topic <name>"
    " --shift-by <number> --dry-run",
    f"kafka-consumer-groups {_ADMIN} --reset-offsets --group <name> --from-file <file> --dry-run",
    f"kafka-consumer-groups {_ADMIN} --reset-offsets --group <name> --all-topics"
    " --to-datetime <name> --dry-run",
    f"kafka-consumer-groups {_ADMIN} --delete-offsets --group <name> --topic <name>",
    "kafka-consumer-groups --validate-regex <regex>",
    "kafka-consumer-perf-test --bootstrap-server <broker> --topic <name> --num-records <number>"
    " --timeout 1 --command-config <file> --command-property client.id=<name>",
    "kafka-consumer-perf-test --bootstrap-server <broker> --include <regex> --num-records 1"
    " --timeout 1",
    f"kafka-delegation-tokens {_ADMIN} --create --max-life-time-period <number>",
    f"kafka-delegation-tokens {_ADMIN} --renew --hmac <name> --renew-time-period <number>",
    f"kafka-delegation-tokens {_ADMIN} --expire --hmac <name> --expiry-time-period <number>",
    f"kafka-delegation-tokens {_ADMIN} --describe --owner-principal <name>",
    f"kafka-delete-records {_ADMIN} --offset-json-file <file>",
    "kafka-dump-log --files <file> --print-data-log --max-bytes <number>",
    "kafka-dump-log --files <file> --deep-iteration --key-decoder-class <name>",
    "kafka-e2e-latency --bootstrap-server <broker> --topic latencies --num-records <number>"
    " --producer-acks 1 --record-size <number> --command-config <file>",
    "kafka-features --bootstrap-server <broker> --command-config <file> describe",
    "kafka-features --bootstrap-server <broker> upgrade --feature <pair> --dry-run",
    "kafka-features --bootstrap-server <broker> downgrade --feature <name> --dry-run",
    f"kafka-get-offsets {_ADMIN} --topic <regex> --partitions <number> --time <name>",
    f"kafka-get-offsets {_ADMIN} --topic-partitions <regex>",
    f"kafka-groups {_ADMIN} --list --group-type <name>",
    f"kafka-leader-election {_ADMIN} --election-type preferred --topic <name> --partition <number>",
    f"kafka-leader-election {_ADMIN} --election-type preferred --path-to-json-file <file>",
    f"kafka-log-dirs {_ADMIN} --describe --broker-list <number> --topic-list <name>",
    "kafka-metadata-quorum --bootstrap-server <broker> --command-config <file> describe --status",
    "kafka-metadata-quorum --bootstrap-server <broker> remove-controller --dry-run"
    " --controller-id <number> --controller-directory-id <name>",
    "kafka-metadata-shell --snapshot <file> cat <name>",
    "kafka-producer-perf-test --bootstrap-server <broker> --topic <name> --num-records <number>"
    " --throughput -1 --payload-file <file> --command-config <file>"
    " --command-property max.block.ms=100",
    f"kafka-reassign-partitions {_ADMIN} --verify --reassignment-json-file <file>",
    f"kafka-reassign-partitions {_ADMIN} --execute --reassignment-json-file <file>"
    " --throttle <number>",
    f"kafka-reassign-partitions {_ADMIN} --generate --topics-to-move-json-file <file>"
    " --broker-list <number>",
    "kafka-server-start <file> --override <pair> --override node.id=x",
    "kafka-server-stop --node-id none-<name>",
    "kafka-storage format --config <file> --cluster-id <name> --feature <pair>",
    "kafka-storage format --config <file> --cluster-id <name> --add-scram <pair>",
    "kafka-storage info --config <file>",
    f"kafka-topics {_ADMIN} --list --topic <regex>",
    f"kafka-topics {_ADMIN} --describe --topic <regex>",
    f"kafka-topics {_ADMIN} --describe --topic-id <name>",
    f"kafka-topics {_ADMIN} --create --topic <name> --partitions <number> --config <pair>",
    f"kafka-topics {_ADMIN} --create --topic <name> --replica-assignment <name>",
    f"kafka-topics {_ADMIN} --alter --topic <regex> --partitions <number>",
    f"kafka-topics {_ADMIN} --delete --topic <regex> --if-exists",
    "kafka-transactions --bootstrap-server <broker> --command-config <file> list"
    " --transactional-id-pattern <regex>",
    "kafka-transactions --bootstrap-server <broker> describe --transactional-id <name>",
    "kafka-transactions --bootstrap-server <broker> describe-producers --topic <name>"
    " --partition <number>",
    "kafka-transactions --bootstrap-server <broker> abort --topic <name> --partition <number>"
    " --start-offset <number>",
    "kafka-verifiable-consumer --bootstrap-server <broker> --topic numbers --group-id <name>"
    " --max-messages 1 --command-config <file> --reset-policy <name>",
    "kafka-verifiable-producer --bootstrap-server <broker> --topic <name> --max-messages 1"
    " --acks <name> --command-config <file>",
)

_CLUSTER = "-b <broker> --command-config <file>"

BARNABAS_LINES = (
    "up --dir <file> --set <pair> --set node.id=x",
    "start <file> --set <pair> --set node.id=x",
    "registry --set <pair> --set no.such.setting=1",
    "schemas list <regex> --registry <registry>",
    "schemas show <name> --version <number> --registry <registry>",
    "schemas show --id <number> --registry <registry>",
    "schemas register <name> <file> --type json --reference <name> --registry <registry>",
    "schemas check <name> <file> --registry <registry>",
    "schemas delete <name> --version <number> --yes --registry <registry>",
    "schemas level <name> --set <name> --registry <registry>",
    "produce <name> -b <broker> --registry <registry> --schema <file>",
    "produce <name> -b <broker> --registry <registry> --schema-id <number>",
    "storage format --config <file> --cluster-id <name> --feature <pair>",
    "storage info --config <file>",
    "storage random-uuid",
    f"produce <name> {_CLUSTER} -H <pair> -k <name> -X client.id=<name>",
    f"consume <name> {_CLUSTER} --offset <number> --partition <number> --timeout 0.01"
    " --format <name>",
    f"topics list <regex> {_CLUSTER}",
    f"topics create <name> {_CLUSTER} --partitions <number> --config <pair>",
    f"topics create <name> {_CLUSTER} --assign <name>",
    f"topics describe <name> {_CLUSTER}",
    f"topics grow <name> <number> {_CLUSTER}",
    f"topics delete <name> --yes {_CLUSTER}",
    f"configs describe topics <name> {_CLUSTER}",
    f"configs describe brokers <number> {_CLUSTER}",
    f"configs set topics <name> <pair> {_CLUSTER}",
    f"configs unset topics <name> <name> {_CLUSTER}",
    f"acls list <name> --topic <name> {_CLUSTER}",
    f"acls add <name> --topic <name> --operation <name> --host <name> {_CLUSTER}",
    f"acls remove <name> --group <name> --yes {_CLUSTER}",
    f"users list {_CLUSTER}",
    f"users add <name> --password-file <file> --iterations <number> {_CLUSTER}",
    f"users remove <name> --mechanism <name> --yes {_CLUSTER}",
    f"quotas list {_CLUSTER}",
    f"quotas set --user <name> --client-id <name> <pair> {_CLUSTER}",
    f"quotas unset --ip <name> <name> {_CLUSTER}",
    f"groups list {_CLUSTER}",
    f"groups describe <name> {_CLUSTER}",
    f"groups members <name> {_CLUSTER}",
    f"groups reset <name> --topic <name> --shift-by <number> --dry-run {_CLUSTER}",
    f"groups reset <name> --to-time <name> --dry-run {_CLUSTER}",
    f"groups reset <name> --back <name> --dry-run {_CLUSTER}",
    f"groups delete <name> --yes {_CLUSTER}",
    f"offsets <name> --at <number> {_CLUSTER}",
    f"records delete numbers:0:<number> --yes {_CLUSTER}",
    f"transactions list {_CLUSTER}",
    f"transactions describe <name> {_CLUSTER}",
    f"transactions hanging --topic <name> --minutes <number> {_CLUSTER}",
    f"transactions abort <name> <number> <number> --yes {_CLUSTER}",
    f"cluster describe {_CLUSTER}",
    f"quorum describe {_CLUSTER}",
    f"leaders elect numbers:<number> {_CLUSTER}",
    f"reassign propose <name> --to <number> {_CLUSTER}",
    f"reassign start <file> --throttle <number> --yes {_CLUSTER}",
    f"reassign list {_CLUSTER}",
    f"reassign cancel --yes {_CLUSTER}",
    f"log-dirs --broker <number> --topic <name> {_CLUSTER}",
    f"features describe {_CLUSTER}",
    f"features set <pair> --dry-run {_CLUSTER}",
    f"perf produce perf --count 1 --size <number> {_CLUSTER}",
    f"perf consume <name> --count 1 --timeout <number> {_CLUSTER}",
    f"perf latency <name> --count 1 --size <number> {_CLUSTER}",
    "connect start <file> --set <pair> --set key.converter=<name> --set heartbeat.interval.ms=x",
    "connect list <regex> --connect <registry>",
    "connect show <name> --connect <registry>",
    "connect create <file> <pair> --connect <registry>",
    "connect create <name> <pair> --connect <registry>",
    "connect validate <name> connector.class=<name> <pair> --connect <registry>",
    "connect pause <name> --connect <registry>",
    "connect resume <name> --connect <registry>",
    "connect stop <name> --connect <registry>",
    "connect restart <name> --tasks --connect <registry>",
    "connect delete <name> --yes --connect <registry>",
    "connect offsets <name> --set <file> --yes --connect <registry>",
    "connect offsets <name> --connect <registry>",
    "connect plugins <regex> --connect <registry>",
    "connect new <name> --kind sink --dir .",
    "connect try <file> <pair> --records <number> --worker <file> -b <broker>",
    "connect try <name> connector.class=<name> <pair>",
    "connect replay-dlq <name> --connector <name> --group <name> --dry-run -b <broker>",
    "spark --write <file>",
    "dump-log <file> --records --max-bytes <number>",
)
