"""The command line: `barnabas` with its subcommands, and Kafka's own commands.

`commands/` has the subcommands of `barnabas`, `kafka/` the options and outputs of Kafka's commands,
`operations/` what both kinds do. Nothing is imported here, because Kafka's commands need no click.
"""


def main() -> None:
    """Runs `barnabas`."""
    from barnabas.cli.root_command import barnabas
    from barnabas.cli.signals import open_standard_streams

    open_standard_streams()
    barnabas()
