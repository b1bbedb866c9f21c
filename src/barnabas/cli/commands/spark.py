"""`barnabas spark`: the settings that make pipelines quick, and Spark started with them."""

import json
import os
from pathlib import Path
from typing import NoReturn

import click

from barnabas.cli.errors import CliError, ExitStatus

PASSED_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""Everything after the command is Spark's to understand."""


@click.group("spark", invoke_without_command=True)
@click.option(
    "--write",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write them into FILE, a spark-defaults.conf.",
)
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
@click.pass_context
def command(context: click.Context, write: Path | None, as_json: bool) -> None:
    """Print the settings that make Spark quick on topics, or start Spark with them.

    \b
      barnabas spark --write conf/spark-defaults.conf
      barnabas spark shell
      barnabas spark submit app.py
    """
    if context.invoked_subcommand is not None:
        return
    from barnabas.spark import session

    if as_json:
        text = json.dumps(session.settings(), indent=2)
    else:
        text = "\n\n".join(
            f"# {setting.why}\n{setting.name} {setting.value}" for setting in session.SETTINGS
        )
    if write is None:
        click.echo(text)
    else:
        _written(write, text)


@command.command("shell", context_settings=PASSED_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def shell(arguments: tuple[str, ...]) -> None:
    """Start `pyspark` with the settings; ARGUMENTS are passed on to it."""
    _become("pyspark", arguments)


@command.command("submit", context_settings=PASSED_ON)
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED)
def submit(arguments: tuple[str, ...]) -> None:
    """Start `spark-submit` with the settings; ARGUMENTS are passed on: app.py and its own."""
    _become("spark-submit", arguments)


def _become(program: str, arguments: tuple[str, ...]) -> NoReturn:
    """This process goes on as Spark's program, and Ctrl-C and exit status are its own."""
    from barnabas.spark import session
    from barnabas.spark.interpreter import for_workers

    _require_all()
    import pyspark

    os.environ.setdefault(session.WORKERS_PYTHON, for_workers())
    script = Path(pyspark.__file__).parent / "bin" / program
    settings = {**session.settings(), **_shell()}
    options = [f"--conf={name}={value}" for name, value in settings.items()]
    os.execv(script, [program, *options, *arguments])


def _shell() -> dict[str, str]:
    """The user's choice of one, said in a way that has Spark take it for nothing more."""
    from barnabas.spark.session import SHELL

    program = os.environ.pop(SHELL, None)
    return {} if program is None else {"spark.pyspark.driver.python": program}


def _written(path: Path, text: str) -> None:
    if path.exists():
        raise CliError(
            f"{path} is there already: move it away, or add to it by hand.", ExitStatus.FAILED
        )
    try:
        path.write_text(text + "\n")
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", ExitStatus.FAILED) from None
    click.echo(f"Written to {path}. Spark reads conf/spark-defaults.conf, or --properties-file.")


def _require_all() -> None:
    from barnabas.spark.prerequisites import PrerequisiteError, require_all

    try:
        require_all()
    except PrerequisiteError as error:
        raise CliError(str(error), ExitStatus.FAILED) from None
