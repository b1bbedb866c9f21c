"""kafka-broker-api-versions: which APIs each broker serves, in which versions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.model import Node
    from barnabas.wire.messages.api_versions import ApiVersion

LAST_KEY = 92
"""The newest API of the Kafka release whose output this command has."""


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = FlatParser(
        "kafka-broker-api-versions", "This tool helps to retrieve broker version information."
    )
    parser.add_connection_options()
    args = parser.parse(arguments)
    parser.require_options(args, "bootstrap-server")
    connection_from(args).run(_print_versions)
    return 0


async def _print_versions(admin: "AioAdminClient") -> None:
    from barnabas.cli.kafka.output import java_text

    versions = await admin.describe_api_versions()
    for node in sorted(versions, key=lambda node: node.id):
        if node in versions.errors:
            print(f"{_node_text(node)} -> ERROR: {java_text(versions.errors[node])}")
        else:
            print(f"{_node_text(node)} -> (\n\t{_lines(versions[node])}\n)")


def _node_text(node: "Node") -> str:
    rack = node.rack or "null"
    return f"{node.host}:{node.port} (id: {node.id} rack: {rack} isFenced: false)"


def _lines(served: "Sequence[ApiVersion]") -> str:
    from barnabas.wire.apis import apis

    versions = {api_version.api_key: api_version for api_version in served}
    lines = []
    for api in apis():
        key = api.key.value
        if "broker" not in api.listeners or key > LAST_KEY:
            continue
        if key not in versions:
            lines.append(f"{api.name}({key}): UNSUPPORTED")
            continue
        oldest, newest = versions[key].min_version, versions[key].max_version
        supported = str(oldest) if oldest == newest else f"{oldest} to {newest}"
        lines.append(f"{api.name}({key}): {supported} [usable: {min(newest, api.versions.max)}]")
    return ",\n\t".join(lines)
