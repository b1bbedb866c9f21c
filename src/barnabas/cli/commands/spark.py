"""`barnabas spark`: recommended Spark settings, and Spark started with them."""

import json
import os
from pathlib import Path
from typing import NoReturn

import click

from barnabas.cli.root_command import CliError, ExitStatus

PASS_THROUGH = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""Arguments after the command belong to Spark."""


@click.group("spark", invoke_without_command=True)
@click.option(
    "--write",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write them to FILE, a spark-defaults.conf.",
)
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
@click.pass_context
def command(context: click.Context, write: Path | None, as_json: bool) -> None:
    """Print recommended Spark settings, or start Spark with them.

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
            f"# {setting.reason}\n{setting.name} {setting.value}" for setting in session.SETTINGS
        )
    if write is None:
        click.echo(text)
    else:
        _write(write, text)


@command.command("shell", context_settings=PASS_THROUGH)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def shell(arguments: tuple[str, ...]) -> None:
    """Start `pyspark` with the settings; ARGUMENTS are passed on to it.

    \b
      barnabas spark shell --master local[4]
    """
    _exec("pyspark", arguments)


@command.command("submit", context_settings=PASS_THROUGH)
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED)
def submit(arguments: tuple[str, ...]) -> None:
    """Start `spark-submit` with the settings; ARGUMENTS are passed on to it.

    \b
      barnabas spark submit app.py
    """
    _exec("spark-submit", arguments)


def _exec(program: str, arguments: tuple[str, ...]) -> NoReturn:
    """Replace this process with Spark's program, which then owns Ctrl-C and the exit status."""
    from barnabas.spark import session
    from barnabas.spark.interpreter import worker_python

    _require_all()
    import pyspark

    os.environ.setdefault(session.WORKER_PYTHON, worker_python())
    script = Path(pyspark.__file__).parent / "bin" / program
    settings = {**session.settings(), **_driver_shell()}
    options = [f"--conf={name}={value}" for name, value in settings.items()]
    os.execv(script, [program, *options, *arguments])


def _driver_shell() -> dict[str, str]:
    """Returns the user's driver shell as a setting, so that Spark uses it for the driver only."""
    from barnabas.spark.session import DRIVER_PYTHON

    program = os.environ.pop(DRIVER_PYTHON, None)
    return {} if program is None else {"spark.pyspark.driver.python": program}


def _write(path: Path, text: str) -> None:
    if path.exists():
        raise CliError(
            f"{path} already exists: move it away, or add the settings by hand.", ExitStatus.FAILED
        )
    try:
        path.write_text(text + "\n")
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", ExitStatus.FAILED) from None
    click.echo(f"Wrote {path}. Spark reads conf/spark-defaults.conf, or --properties-file.")


def _require_all() -> None:
    from barnabas.spark.prerequisites import PrerequisiteError, require_all

    try:
        require_all()
    except PrerequisiteError as error:
        raise CliError(str(error), ExitStatus.FAILED) from None
