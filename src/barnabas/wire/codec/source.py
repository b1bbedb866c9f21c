"""A generated Python function and the constants it refers to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """Lines of one function. Constants are globals of it; locals never collide."""

    def __init__(self, **constants: object) -> None:
        self._lines: list[str] = []
        self._indent = ""
        self._constants: dict[str, object] = constants
        self._locals = 0

    def add(self, line: str) -> None:
        self._lines.append(self._indent + line)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Indents the lines that are added inside, below the opening one."""
        self.add(opening)
        outer = self._indent
        self._indent += "    "
        yield
        self._indent = outer

    def local(self, hint: str) -> str:
        """Returns a variable name that is not used yet."""
        self._locals += 1
        return f"{hint}{self._locals}"

    def constant(self, name: str, value: object) -> str:
        """Defines a constant of the function."""
        self._constants[name] = value
        return name

    def compile(self, function_name: str, title: str) -> Any:
        """Returns the compiled function; `title` is the file name in tracebacks."""
        exec(compile("\n".join(self._lines), f"<{title}>", "exec"), self._constants)
        return self._constants[function_name]
