"""`barnabas users`: the SCRAM users of a cluster."""

import sys

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import CommandError, UnreadableFileError
from barnabas.cli.options import CommandGroup, admin_command, confirm, yes_option

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_mechanism = click.option(
    "--mechanism",
    "-m",
    "mechanisms",
    multiple=True,
    type=click.Choice(MECHANISMS, case_sensitive=False),
    help="Can be repeated.  [default: both]",
)


@click.group("users", cls=CommandGroup)
def command() -> None:
    """List, add and remove users who log in with SCRAM."""


@command.command("list")
@admin_command
def list_(connection: Connection, display: Display) -> None:
    """List the users and the mechanisms that they can log in with.

    \b
      barnabas users list
    """
    from barnabas.cli.operations.configs import SCRAM_MECHANISMS, describe_credentials

    names = {mechanism: name for name, mechanism in SCRAM_MECHANISMS.items()}
    users = connection.run(lambda admin: describe_credentials(admin, None))
    rows = [
        (user, names[info.mechanism], info.iterations)
        for user, described in sorted(users.items())
        for info in described.scram_credential_infos
    ]
    display.print_table(["USER", "MECHANISM", "ITERATIONS"], rows)


@command.command("add")
@click.argument("user")
@_mechanism
@click.option("--iterations", "-i", type=click.IntRange(4096, 16384), default=4096,
              show_default=True, help="Hashes that a client computes at a login.")  # fmt: skip
@click.option(
    "--password-file",
    metavar="FILE",
    help="Its first line is the password; - reads standard input.  [default: ask]",
)
@admin_command
def add(
    connection: Connection,
    display: Display,
    user: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password_file: str | None,
) -> None:
    """Add USER, or change the password.

    The password is not an option, because others could read it in the list of processes.

    \b
      barnabas users add alice
      barnabas users add app --password-file app.password
    """
    from barnabas.cli.operations.configs import set_password
    from barnabas.client.admin import AioAdminClient

    password = _read_password(user, password_file)
    chosen = mechanisms or MECHANISMS

    async def set_all(admin: AioAdminClient) -> None:
        for mechanism in chosen:  # a request changes one mechanism of a user
            await set_password(admin, user, mechanism, iterations, password)

    connection.run(set_all)
    display.print_result(
        f"{user} can log in with {' and '.join(chosen)}.", user=user, mechanisms=chosen
    )


@command.command("remove")
@click.argument("user")
@_mechanism
@yes_option
@admin_command
def remove(
    connection: Connection, display: Display, user: str, mechanisms: tuple[str, ...], yes: bool
) -> None:
    """Remove USER, or one mechanism of the user.

    Open connections stay; a new login fails.

    \b
      barnabas users remove alice
    """
    from barnabas.cli.operations.configs import (
        SCRAM_MECHANISMS,
        alter_credentials,
        describe_credentials,
    )
    from barnabas.client.admin import AioAdminClient

    confirm(f"Remove user {user}?", yes=yes)

    async def remove_all(admin: AioAdminClient) -> list[str]:
        described = await describe_credentials(admin, user)
        present = {
            info.mechanism for each in described.values() for info in each.scram_credential_infos
        }
        removed = [name for name in mechanisms or MECHANISMS if SCRAM_MECHANISMS[name] in present]
        for name in removed:
            await alter_credentials(admin, user, {}, [name])
        return removed

    removed = connection.run(remove_all)
    if not removed:
        raise CommandError(f"{user} has no password for {' or '.join(mechanisms or MECHANISMS)}")
    display.print_result(
        f"{user} can no longer log in with {' and '.join(removed)}.", user=user, removed=removed
    )


def _read_password(user: str, file: str | None) -> str:
    if file is None:
        if not sys.stdin.isatty():
            raise CommandError("Standard input is not a terminal: give --password-file.")
        password: str = click.prompt(
            f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True
        )
        return password
    try:
        with click.open_file(file) as lines:
            password = lines.readline().rstrip("\r\n")
    except OSError as error:
        raise UnreadableFileError(file, error) from None
    if not password:
        raise CommandError(f"{file} has no password in its first line")
    return password
