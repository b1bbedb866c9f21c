"""kafka-configs: describe and alter the configs of topics, brokers, groups and clients."""

from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from
from barnabas.cli.operations import configs as operations
from barnabas.cli.operations.errors import CommandError
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
"""Java's names of config sources, by their numbers in the protocol."""

_ENTITY_LABELS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}


class ConfigEntity(NamedTuple):
    """An entity: the name is None for all of a kind, "" for the default."""

    kind: str
    name: str | None


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    if parser.only_one_of(args, "alter", "describe") is None:
        parser.usage_error("Command must include exactly one action: --describe, --alter")
    parser.forbid_together(args, "describe", "add-config", "delete-config")
    entities = _entities(args)
    _check(args, entities)
    act = _alter if args.alter else _describe
    connection_from(args).run(lambda admin: act(admin, args, entities))
    return 0


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-configs",
        "This tool helps to manipulate and describe entity config for a topic, client, user, "
        "broker, ip, client-metrics or group",
    )
    parser.add_connection_options(controllers=True)
    parser.add_flag("--alter", "Alter the configs of the entity.")
    parser.add_flag("--describe", "List the configs of the entity.")
    parser.add_flag("--all", "List all configs, including defaults and static configs.")
    parser.add_value(
        "--entity-type",
        "type",
        f"The entity type: one of {', '.join(ENTITY_TYPES)}.",
        action="append",
    )
    parser.add_argument(
        "--entity-name",
        dest="entity_names",
        metavar="<name>",
        action="append",
        help="The entity name; the id of a broker.",
    )
    parser.add_argument(
        "--entity-default",
        dest="entity_names",
        action="append_const",
        const="",
        help="The default of users, clients, brokers or ips.",
    )
    parser.add_value("--add-config", "k1=v1,k2=[v1,v2]", "Configs to add; brackets enclose a list.")
    parser.add_value("--add-config-file", "file", "A properties file of configs to add.")
    parser.add_value("--delete-config", "k1,k2", "Configs to remove.", action="append")
    for name, kind in NAMED.items():
        parser.add_value(name, "name", f"The name of one of the {kind}.")
    for name, kind in DEFAULTS.items():
        parser.add_flag(name, f"The default of {kind}.")
    return parser


def _entities(args: Namespace) -> list[ConfigEntity]:
    kinds, names = list(args.entity_type or ()), list(args.entity_names or ())
    flagged = [
        ConfigEntity(kind, value)
        for name, kind in NAMED.items()
        if (value := getattr(args, name[2:].replace("-", "_"))) is not None
    ]
    flagged += [
        ConfigEntity(kind, "")
        for name, kind in DEFAULTS.items()
        if getattr(args, name[2:].replace("-", "_"))
    ]
    if (kinds or names) and flagged:
        raise CommandError(
            "--entity-{type,name,default} should not be used in conjunction with specific entity "
            "flags"
        )
    if len(names) > len(kinds):
        raise CommandError("More entity names specified than entity types")
    padded = [*names, *[None] * (len(kinds) - len(names))]
    return flagged or [ConfigEntity(*entity) for entity in zip(kinds, padded, strict=True)]


def _check(args: Namespace, entities: Sequence[ConfigEntity]) -> None:
    kinds = [entity.kind for entity in entities]
    if len(set(kinds)) < len(kinds):
        twice = ",".join(kind for kind in set(kinds) if kinds.count(kind) > 1)
        raise CommandError(f"Duplicate entity type(s) specified: {twice}")
    for kind in kinds:
        if kind not in ENTITY_TYPES:
            raise CommandError(
                f"Invalid entity type {kind}, the entity type must be one of "
                f"{', '.join(ENTITY_TYPES)} with a --bootstrap-server or --bootstrap-controller "
                "argument"
            )
    if not kinds:
        raise CommandError("At least one entity type must be specified")
    if len(kinds) > 1 and set(kinds) != {"users", "clients"}:
        raise CommandError("Only 'users' and 'clients' entity types may be specified together")
    if not args.bootstrap_server and not args.bootstrap_controller:
        raise CommandError(
            "One of the required --bootstrap-server or --bootstrap-controller arguments must be "
            "specified"
        )
    if args.bootstrap_server and args.bootstrap_controller:
        raise CommandError(
            "Only one of --bootstrap-server or --bootstrap-controller can be specified"
        )
    if args.alter:
        _check_alter(args, entities)
    else:
        _check_describe(entities)


def _check_describe(entities: Sequence[ConfigEntity]) -> None:
    first = entities[0]
    if first.name == "" and first.kind not in WITH_DEFAULTS:
        raise CommandError(
            f"--entity-default must not be specified with --describe of {first.kind}"
        )
    if first.kind == "broker-loggers" and not first.name:
        raise CommandError(f"An entity name must be specified with --describe of {first.kind}")


def _check_alter(args: Namespace, entities: Sequence[ConfigEntity]) -> None:
    first = entities[0]
    if first.kind in WITH_DEFAULTS:
        if all(entity.name is None for entity in entities):
            raise CommandError(
                "An entity-name or default entity must be specified with --alter of users, "
                "clients, brokers or ips"
            )
        if any(entity.name is None for entity in entities):
            raise CommandError("An entity name must be specified for every entity type")
    elif not first.name:
        raise CommandError(f"An entity name must be specified with --alter of {first.kind}")
    if args.add_config is not None and args.add_config_file is not None:
        raise CommandError("Only one of --add-config or --add-config-file must be specified")
    if not (args.add_config or args.add_config_file or args.delete_config):
        raise CommandError(
            "At least one of --add-config, --add-config-file, or --delete-config must be "
            "specified with --alter"
        )


async def _alter(
    admin: "AioAdminClient", args: Namespace, entities: Sequence[ConfigEntity]
) -> None:
    from barnabas.cli.operations import configs

    added: dict[str, str] = {}
    if args.add_config_file:
        added = configs.require_keys(read_properties(args.add_config_file))
    if args.add_config:
        added = configs.parse_added(args.add_config)
    deleted = [key.strip() for names in args.delete_config or () for key in names.split(",") if key]
    first = entities[0]
    if first.kind in QUOTAS:
        await alter_client_configs(admin, entities, added, deleted)
    else:
        kind = configs.EntityType(first.kind)
        await configs.alter_configs(admin, kind, first.name or "", added, deleted)
    if first.name:
        print(f"Completed updating config for {first.kind[:-1]} {first.name}.")
    else:
        print(f"Completed updating default config for {first.kind} in the cluster.")


async def _describe(
    admin: "AioAdminClient", args: Namespace, entities: Sequence[ConfigEntity]
) -> None:
    from barnabas.cli.operations import configs

    first = entities[0]
    if first.kind in QUOTAS:
        return await describe_client_configs(admin, entities)
    kind = configs.EntityType(first.kind)
    names = await configs.entity_names(admin, kind)
    if first.name and first.name not in names:
        configs.require_broker_id(kind, first.name)
        print(f"The {kind.singular} '{first.name}' doesn't exist and doesn't have dynamic config.")
        return None
    for name in names if first.name is None else [first.name]:
        if name == configs.ALL_BROKERS:
            print(f"Default configs for {first.kind} in the cluster are:")
        else:
            print(f"{'All' if args.all else 'Dynamic'} configs for {kind.singular} {name} are:")
        for entry in await configs.describe_configs(admin, kind, name, everything=args.all):
            print(f"  {_line(entry)}")
    return None


def _line(entry: "ConfigEntry") -> str:
    from barnabas.cli.operations.configs import config_source

    synonyms = ", ".join(
        f"{_SOURCES[config_source(source).value]}:{source.name}={_text(source.value)}"
        for source in entry.sources
    )
    sensitive = str(entry.is_sensitive).lower()
    return f"{entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _text(value: str | None) -> str:
    return "null" if value is None else value


async def describe_client_configs(
    admin: "AioAdminClient", entities: Sequence[operations.EntityName]
) -> None:
    for entity, quotas in (await operations.describe_quotas(admin, entities)).items():
        named = ", ".join(
            f"{label} '{name}'" if (name := entity.entries[kind]) else f"the default {label}"
            for kind, label in _ENTITY_LABELS.items()
            if kind in entity.entries
        )
        values = ", ".join(f"{key}={value}" for key, value in quotas.items())
        print(f"Quota configs for {named} are {values}")
    kind, name = entities[0]
    if len(entities) > 1 or kind != "users" or name == "":
        return
    for user, described in (await operations.describe_credentials(admin, name)).items():
        names = {mechanism: name for name, mechanism in operations.SCRAM_MECHANISMS.items()}
        credentials = ", ".join(
            f"{names[credential.mechanism]}=iterations={credential.iterations}"
            for credential in described.scram_credential_infos
        )
        print(f"SCRAM credential configs for user-principal '{user}' are {credentials}")


async def alter_client_configs(
    admin: "AioAdminClient",
    entities: Sequence[operations.EntityName],
    added: Mapping[str, str],
    deleted: Collection[str],
) -> None:
    kind, name = entities[0]
    names = [*added, *deleted]
    scram = [name for name in names if name in operations.SCRAM_MECHANISMS]
    if kind == "ips":
        _require(names, operations.IP_QUOTAS, "connection quota", kind)
    elif kind == "users" and len(entities) == 1:
        allowed = (*operations.USER_QUOTAS, *operations.SCRAM_MECHANISMS)
        _require(names, allowed, "quota and SCRAM credential", kind)
    else:
        _require(names, operations.USER_QUOTAS, "quota", "clients")
    if not scram:
        return await operations.alter_quotas(admin, entities, added, deleted)
    if not name:
        raise CommandError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM "
            "Credentials using --bootstrap-server."
        )
    if len(scram) < len(names):
        raise CommandError(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' "
            "using --bootstrap-server."
        )
    return await operations.alter_credentials(admin, name, added, deleted)


def _require(names: Sequence[str], allowed: Sequence[str], what: str, kind: str) -> None:
    if unknown := [name for name in names if name not in allowed]:
        raise CommandError(
            f"Only {what} configs can be added for '{kind}' using --bootstrap-server. Unexpected "
            f"config names: {','.join(unknown)}"
        )
