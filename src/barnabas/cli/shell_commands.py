"""How a command of this installation is written so that it works in the user's shell."""

import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

MAX_LINE_LENGTH = 80


def shell_word(name: str) -> str:
    """Returns the word to type for a command: its name, if the PATH finds this installation's.

    Otherwise its path, relative to the current directory if it is below that.
    """
    script = _scripts() / name
    if script.exists():
        return _word_for(script)
    return " ".join([python_word(), "-m", *_module_of(name)])


def python_word() -> str:
    """Returns the word to type for the Python of this installation."""
    return _word_for(Path(sys.executable))


def shell_command(name: str, *arguments: str) -> str:
    """Returns a whole command line."""
    return " ".join([shell_word(name), *map(shlex.quote, arguments)])


def wrapped(line: str, indent: str = "  ") -> list[str]:
    """Returns a command line in lines of a terminal's width that can be pasted as they are."""
    lines, current = [], indent
    for word in line.split(" "):
        if current.strip() and len(current) + len(word) + 2 > MAX_LINE_LENGTH:
            lines.append(f"{current}\\")
            current = indent * 2
        current += f"{word} "
    return [*lines, current.rstrip()]


def _word_for(program: Path) -> str:
    found = shutil.which(program.name)
    if found is not None and Path(found).parent.resolve() == program.parent.resolve():
        return program.name
    return shlex.quote(shown_path(program))


def _module_of(name: str) -> Sequence[str]:
    """Returns the module that runs a command without its script."""
    if name == "barnabas":
        return ["barnabas.cli"]
    return ["barnabas.cli.kafka", name.removesuffix(".sh")]


def _scripts() -> Path:
    """Returns the directory with the scripts of this installation."""
    running = Path(sys.argv[0])
    if running.name == "barnabas":
        return running.absolute().parent
    return Path(sysconfig.get_path("scripts"))


def shown_path(path: Path) -> str:
    """Returns the path relative to the current directory if it is below that.

    Links are not followed: the Python of a virtual environment is a link.
    """
    here = Path(os.environ.get("PWD") or Path.cwd())
    for directory in (here, Path.cwd()):
        if path.is_relative_to(directory):
            relative = str(path.relative_to(directory))
            return relative if "/" in relative else f"./{relative}"
    return str(path)
