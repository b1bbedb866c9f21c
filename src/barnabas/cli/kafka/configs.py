"""kafka-configs: describe and alter the settings of topics, brokers, groups and clients."""

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.options import Flat, connect
from barnabas.cli.operations.errors import Refused
from barnabas.cli.operations.settings import read_properties

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.configs import ConfigEntry

RESOURCES = ("topics", "brokers", "broker-loggers", "groups", "client-metrics")
QUOTAS = ("users", "clients", "ips")
ENTITY_TYPES = (*RESOURCES, *QUOTAS)
WITH_DEFAULTS = ("brokers", *QUOTAS)

NAMED = {
    "--topic": "topics",
    "--client": "clients",
    "--user": "users",
    "--broker": "brokers",
    "--broker-logger": "broker-loggers",
    "--ip": "ips",
    "--client-metrics": "client-metrics",
    "--group": "groups",
}
DEFAULTS = {
    "--client-defaults": "clients",
    "--user-defaults": "users",
    "--broker-defaults": "brokers",
    "--ip-defaults": "ips",
}

_SOURCES = (
    "UNKNOWN",
    "DYNAMIC_TOPIC_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG",
    "DYNAMIC_BROKER_LOGGER_CONFIG",
    "DYNAMIC_CLIENT_METRICS_CONFIG",
    "DYNAMIC_GROUP_CONFIG",
)
"""Java's names for where a value comes from, by the protocol's numbers."""


class Entity(NamedTuple):
    """Whose settings are meant: the name is None for all of a kind, "" for their defaults."""

    kind: str
    name: str | None


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(arguments)
    if options.one_of(chosen, "alter", "describe") is None:
        options.refuse("Command must include exactly one action: --describe, --alter")
    options.forbid(chosen, "describe", "add-config", "delete-config")
    with reasons_to_stderr():
        entities = _entities(chosen)
        _check(chosen, entities)
        act = _alter if chosen.alter else _describe
        connect(chosen).ask(lambda admin: act(admin, chosen, entities))
    return 0


def _options() -> Flat:
    options = Flat(
        "kafka-configs",
        "This tool helps to manipulate and describe entity config for a topic, client, user, "
        "broker, ip, client-metrics or group",
    )
    options.connection(controllers=True)
    options.flag("--alter", "Alter the settings of the entity.")
    options.flag("--describe", "List the settings of the entity.")
    options.flag("--all", "List all settings, with those that come from elsewhere.")
    options.value(
        "--entity-type", "type", f"What it is: one of {', '.join(ENTITY_TYPES)}.", action="append"
    )
    options.add_argument(
        "--entity-name",
        dest="entity_names",
        metavar="<name>",
        action="append",
        help="Its name; a broker's is its id.",
    )
    options.add_argument(
        "--entity-default",
        dest="entity_names",
        action="append_const",
        const="",
        help="The defaults of all users, clients, brokers or ips.",
    )
    options.value(
        "--add-config", "k1=v1,k2=[v1,v2]", "Settings to add; brackets hold a value together."
    )
    options.value("--add-config-file", "file", "A properties file of settings to add.")
    options.value("--delete-config", "k1,k2", "Settings to remove.", action="append")
    for name, kind in NAMED.items():
        options.value(name, "name", f"One of the {kind}.")
    for name, kind in DEFAULTS.items():
        options.flag(name, f"The defaults of all {kind}.")
    return options


def _entities(chosen: Namespace) -> list[Entity]:
    kinds, names = list(chosen.entity_type or ()), list(chosen.entity_names or ())
    flagged = [
        Entity(kind, value)
        for name, kind in NAMED.items()
        if (value := getattr(chosen, name[2:].replace("-", "_"))) is not None
    ]
    flagged += [
        Entity(kind, "")
        for name, kind in DEFAULTS.items()
        if getattr(chosen, name[2:].replace("-", "_"))
    ]
    if (kinds or names) and flagged:
        raise Refused(
            "--entity-{type,name,default} should not be used in conjunction with specific entity "
            "flags"
        )
    if len(names) > len(kinds):
        raise Refused("More entity names specified than entity types")
    padded = [*names, *[None] * (len(kinds) - len(names))]
    return flagged or [Entity(*each) for each in zip(kinds, padded, strict=True)]


def _check(chosen: Namespace, entities: Sequence[Entity]) -> None:
    kinds = [entity.kind for entity in entities]
    if len(set(kinds)) < len(kinds):
        twice = ",".join(kind for kind in set(kinds) if kinds.count(kind) > 1)
        raise Refused(f"Duplicate entity type(s) specified: {twice}")
    for kind in kinds:
        if kind not in ENTITY_TYPES:
            raise Refused(
                f"Invalid entity type {kind}, the entity type must be one of "
                f"{', '.join(ENTITY_TYPES)} with a --bootstrap-server or --bootstrap-controller "
                "argument"
            )
    if not kinds:
        raise Refused("At least one entity type must be specified")
    if len(kinds) > 1 and set(kinds) != {"users", "clients"}:
        raise Refused("Only 'users' and 'clients' entity types may be specified together")
    if not chosen.bootstrap_server and not chosen.bootstrap_controller:
        raise Refused(
            "One of the required --bootstrap-server or --bootstrap-controller arguments must be "
            "specified"
        )
    if chosen.bootstrap_server and chosen.bootstrap_controller:
        raise Refused("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    if chosen.alter:
        _check_alter(chosen, entities)
    else:
        _check_describe(entities)


def _check_describe(entities: Sequence[Entity]) -> None:
    first = entities[0]
    if first.name == "" and first.kind not in WITH_DEFAULTS:
        raise Refused(f"--entity-default must not be specified with --describe of {first.kind}")
    if first.kind == "broker-loggers" and not first.name:
        raise Refused(f"An entity name must be specified with --describe of {first.kind}")


def _check_alter(chosen: Namespace, entities: Sequence[Entity]) -> None:
    first = entities[0]
    if first.kind in WITH_DEFAULTS:
        if all(entity.name is None for entity in entities):
            raise Refused(
                "An entity-name or default entity must be specified with --alter of users, "
                "clients, brokers or ips"
            )
        if any(entity.name is None for entity in entities):
            raise Refused("An entity name must be specified for every entity type")
    elif not first.name:
        raise Refused(f"An entity name must be specified with --alter of {first.kind}")
    if chosen.add_config is not None and chosen.add_config_file is not None:
        raise Refused("Only one of --add-config or --add-config-file must be specified")
    if not (chosen.add_config or chosen.add_config_file or chosen.delete_config):
        raise Refused(
            "At least one of --add-config, --add-config-file, or --delete-config must be "
            "specified with --alter"
        )


async def _alter(admin: "AioAdminClient", chosen: Namespace, entities: Sequence[Entity]) -> None:
    from barnabas.cli.operations import configs

    added: dict[str, str] = {}
    if chosen.add_config_file:
        added = configs.require_keys(read_properties(chosen.add_config_file))
    if chosen.add_config:
        added = configs.parse_added(chosen.add_config)
    deleted = [
        key.strip() for given in chosen.delete_config or () for key in given.split(",") if key
    ]
    first = entities[0]
    if first.kind in QUOTAS:
        from barnabas.cli.kafka import client_configs

        await client_configs.alter(admin, entities, added, deleted)
    else:
        kind = configs.Kind(first.kind)
        await configs.alter(admin, kind, first.name or "", added, deleted)
    if first.name:
        print(f"Completed updating config for {first.kind[:-1]} {first.name}.")
    else:
        print(f"Completed updating default config for {first.kind} in the cluster.")


async def _describe(admin: "AioAdminClient", chosen: Namespace, entities: Sequence[Entity]) -> None:
    from barnabas.cli.operations import configs

    first = entities[0]
    if first.kind in QUOTAS:
        from barnabas.cli.kafka import client_configs

        return await client_configs.describe(admin, entities)
    kind = configs.Kind(first.kind)
    known = await configs.names_of(admin, kind)
    if first.name and first.name not in known:
        configs.require_name(kind, first.name)
        print(f"The {kind.one} '{first.name}' doesn't exist and doesn't have dynamic config.")
        return None
    for name in known if first.name is None else [first.name]:
        if name == configs.ALL_BROKERS:
            print(f"Default configs for {first.kind} in the cluster are:")
        else:
            print(f"{'All' if chosen.all else 'Dynamic'} configs for {kind.one} {name} are:")
        for entry in await configs.settings_of(admin, kind, name, everything=chosen.all):
            print(f"  {_line(entry)}")
    return None


def _line(entry: "ConfigEntry") -> str:
    from barnabas.cli.operations.configs import source_of

    synonyms = ", ".join(
        f"{_SOURCES[source_of(each).value]}:{each.name}={_text(each.value)}"
        for each in entry.sources
    )
    sensitive = str(entry.is_sensitive).lower()
    return f"{entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _text(value: str | None) -> str:
    return "null" if value is None else value
