"""The commands: `barnabas` with its subcommands, and Kafka's own under their own names.

`work/` does what they say, `kafka/` has Kafka's options and outputs, and the modules beside them
are the subcommands. Nothing is imported here: Kafka's commands need no click.
"""


def main() -> None:
    """`barnabas`."""
    from barnabas.cli.root_command import barnabas

    barnabas()
