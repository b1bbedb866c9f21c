"""`barnabas schemas`: the schemas of a registry."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.options import (
    POSITIVE_INT32,
    CommandGroup,
    confirm,
    parse_regex,
    registry_option,
    yes_option,
)

if TYPE_CHECKING:
    from barnabas.schema_registry import RegisteredSchema, Schema

TYPES = ("avro", "json", "protobuf")
LEVELS = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)


def _registry_command(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--registry` and `--json`; passes a `client` and a `display`."""

    @registry_option(default="http://localhost:8081")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @functools.wraps(command)
    def run(registry: str, registry_config: str | None, as_json: bool, **options: Any) -> None:
        from barnabas.cli.operations.schemas import open_registry

        with open_registry(registry, registry_config) as client:
            command(client=client, display=Display(as_json), **options)

    return run


def _file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the file of a schema, `--type` and `--reference`; passes the `schema`."""

    @click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
    @click.option(
        "--type",
        "schema_type",
        type=click.Choice(TYPES, case_sensitive=False),
        help="[default: by suffix: .avsc, .json or .proto]",
    )
    @click.option(
        "--reference",
        "references",
        multiple=True,
        metavar="NAME:SUBJECT:VERSION",
        help="A schema that this one refers to by NAME; can be repeated.",
    )
    @functools.wraps(command)
    def run(
        file: Path, schema_type: str | None, references: tuple[str, ...], **options: Any
    ) -> None:
        from barnabas.cli.operations.schemas import parse_reference, read_schema

        schema = read_schema(file, schema_type, [parse_reference(text) for text in references])
        command(schema=schema, **options)

    return run


@click.group("schemas", cls=CommandGroup)
def command() -> None:
    """List, show, register, check and delete the schemas of a registry.

    A subject is the name that a schema is registered under: orders-value for the values of the
    topic orders, orders-key for its keys.

    \b
      barnabas schemas list
      barnabas schemas register orders-value order.avsc
      barnabas schemas check orders-value order-v2.avsc
    """


@command.command("list")
@click.argument("pattern", required=False)
@_registry_command
def list_(client: Any, display: Display, pattern: str | None) -> None:
    """List subjects, or those that fully match the regular expression PATTERN.

    \b
      barnabas schemas list 'orders-.*'
    """
    from barnabas.cli.operations.schemas import list_subjects

    rows = [
        (latest.subject, latest.schema.schema_type, latest.version, latest.schema_id)
        for latest in list_subjects(client, parse_regex(pattern))
    ]
    display.print_table(["SUBJECT", "TYPE", "LATEST VERSION", "ID"], rows)


@command.command("show")
@click.argument("subject", required=False)
@click.option("--version", type=POSITIVE_INT32, help="[default: the latest]")
@click.option("--id", "schema_id", type=POSITIVE_INT32, help="The schema with this id.")
@_registry_command
def show(
    client: Any,
    display: Display,
    subject: str | None,
    version: int | None,
    schema_id: int | None,
) -> None:
    """Print the schema of SUBJECT, or the one with an id.

    \b
      barnabas schemas show orders-value
      barnabas schemas show orders-value --version 1 > order-v1.avsc
      barnabas schemas show --id 7 --json
    """
    if (subject is None) == (schema_id is None) or (schema_id and version):
        raise click.UsageError("give a SUBJECT, with --version or not, or --id")
    if schema_id is not None:
        schema = client.get_schema(schema_id)
        _print_schema(display, schema, {"id": schema_id, **schema.to_dict()})
        return
    registered: RegisteredSchema = client.get_version(subject, version or "latest")
    _print_schema(display, registered.schema, registered.to_dict())


@command.command("register")
@click.argument("subject")
@_file_options
@_registry_command
def register(client: Any, display: Display, subject: str, schema: "Schema") -> None:
    """Register the schema in FILE as the next version of SUBJECT.

    A schema that the subject already has keeps its version and id.

    \b
      barnabas schemas register orders-value order.avsc
      barnabas schemas register orders-value order.avsc --reference Money:money:1
    """
    from barnabas.cli.operations.schemas import register_schema

    register_schema(client, subject, schema)
    registered = client.lookup_schema(subject, schema)
    display.print_result(
        f"{subject} version {registered.version} has id {registered.schema_id}.",
        subject=subject,
        version=registered.version,
        id=registered.schema_id,
    )


@command.command("check")
@click.argument("subject")
@_file_options
@_registry_command
def check(client: Any, display: Display, subject: str, schema: "Schema") -> None:
    """Check whether the schema in FILE could be registered under SUBJECT.

    The compatibility level of the subject decides with which versions it must be compatible. Exits
    with status 1, and prints the reasons, if it is not.

    \b
      barnabas schemas check orders-value order-v2.avsc
    """
    from barnabas.cli.operations.schemas import (
        compatibility_level,
        find_incompatibilities,
        find_latest,
    )

    reasons = find_incompatibilities(client, subject, schema)
    level = compatibility_level(client, subject).level
    if display.as_json:
        display.print_json(
            {"subject": subject, "level": level, "compatible": not reasons, "reasons": reasons}
        )
    elif find_latest(client, subject) is None:
        click.echo(f"{subject} has no versions: the schema would be its first.")
    elif not reasons:
        click.echo(f"The schema is compatible with {subject} ({level}).")
    else:
        for reason in reasons:
            click.echo(reason)
    if reasons:
        raise CommandError(f"the schema is not compatible with {subject} ({level})")


@command.command("delete")
@click.argument("subject")
@click.option("--version", type=POSITIVE_INT32, help="Only this version.  [default: all]")
@click.option(
    "--permanent",
    is_flag=True,
    help="Delete it for good: records that were written with it cannot be read any more.",
)
@yes_option
@_registry_command
def delete(
    client: Any,
    display: Display,
    subject: str,
    version: int | None,
    permanent: bool,
    yes: bool,
) -> None:
    """Delete SUBJECT, or one version of it. Records stay readable unless --permanent is given.

    \b
      barnabas schemas delete orders-value --version 2
      barnabas schemas delete orders-value --permanent --yes
    """
    from barnabas.cli.operations.schemas import delete_schema

    what = f"{subject} version {version}" if version else f"all versions of {subject}"
    confirm(f"Delete {what}{' permanently' if permanent else ''}?", yes=yes)
    versions = delete_schema(client, subject, version, permanent=permanent)
    deleted = ", ".join(map(str, versions))
    display.print_result(
        f"{subject} version{'' if len(versions) == 1 else 's'} {deleted} deleted.",
        subject=subject,
        deleted=versions,
        permanent=permanent,
    )


@command.command("level")
@click.argument("subject", required=False)
@click.option(
    "--set",
    "level",
    type=click.Choice(LEVELS, case_sensitive=False),
    metavar="LEVEL",
    help="BACKWARD, FORWARD or FULL, each also with _TRANSITIVE, or NONE.",
)
@_registry_command
def level_(client: Any, display: Display, subject: str | None, level: str | None) -> None:
    """Show or set the compatibility level of SUBJECT. Default: the level of all subjects.

    \b
      barnabas schemas level orders-value
      barnabas schemas level orders-value --set FULL
    """
    from barnabas.cli.operations.schemas import compatibility_level

    if level is not None:
        client.set_compatibility(subject, level.upper())
    current = compatibility_level(client, subject)
    where = subject or "all subjects"
    note = " (the level of all subjects)" if subject and current.is_global else ""
    display.print_result(f"{where}: {current.level}{note}", subject=subject, level=current.level)


def _print_schema(display: Display, schema: "Schema", fields: dict[str, Any]) -> None:
    """Prints the text of a schema, with line breaks if it is JSON, or all fields as JSON."""
    text = schema.schema_str or ""
    if display.as_json:
        display.print_json(fields)
        return
    if schema.schema_type != "PROTOBUF":
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    click.echo(text)
