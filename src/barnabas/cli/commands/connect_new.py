"""`barnabas connect new`: a package with a connector of one's own."""

from pathlib import Path

import click


@click.command("new")
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(["source", "sink"]),
    default="source",
    show_default=True,
    help="What the connector does: read something into a topic, or write topics to something.",
)
@click.option(
    "--dir",
    "directory",
    metavar="DIRECTORY",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write the package.  [default: NAME]",
)
def new(name: str, kind: str, directory: Path | None) -> None:
    """Write a small pip package with a working connector and its test.

    \b
      barnabas connect new acme-files
      cd acme-files && python -m pytest
    """
    from barnabas.cli.operations.connect_package import package_of, write_package

    package = package_of(name, kind)
    target = Path(name) if directory is None else directory
    for file in write_package(package, target):
        click.echo(file)
    click.echo(
        f"\n{package.class_name} is {kind} {package.module}:{package.class_name}. Its test:"
        f"\n  cd {target} && python -m pytest"
    )
