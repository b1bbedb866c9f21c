"""The commands of the metadata shell."""

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase

from barnabas.cli.operations.metadata_shell.tree import Directory

Node = Directory | str


class MetadataShell:
    """A working directory in the tree, and the history of commands."""

    def __init__(self, root: Directory) -> None:
        self._root = root
        self.working_directory: tuple[str, ...] = ()
        self.history: list[str] = []

    def run(self, words: Sequence[str]) -> Iterator[str]:
        """Yields the output of a command."""
        if not words:
            return
        name, *arguments = words
        command = COMMANDS.get(name)
        if command is None:
            yield f"{name}: unknown command; use one of {', '.join(COMMANDS)} and exit."
        else:
            yield from command[0](self, arguments)

    def complete(self, path: str) -> list[str]:
        """Returns the completions of a path."""
        directory, slash, prefix = path.rpartition("/")
        entries = self._at(self._parts(directory + slash))
        if not isinstance(entries, dict):
            return []
        return [directory + slash + name for name in sorted(entries) if name.startswith(prefix)]

    def ls(self, arguments: Sequence[str]) -> Iterator[str]:
        targets = list(self._resolve(arguments or ["."]))
        for name, problem, node in targets:
            if problem:
                yield f"ls: {problem}: no such file or directory."
            elif isinstance(node, str):
                yield name
        directories = [(name, node) for name, _, node in targets if isinstance(node, dict)]
        for index, (name, node) in enumerate(directories):
            if len(targets) > 1:
                yield f"{name}:"
            yield from sorted(node)
            if index < len(directories) - 1:
                yield ""

    def cat(self, arguments: Sequence[str]) -> Iterator[str]:
        for _, problem, node in self._resolve(arguments):
            if problem:
                yield f"cat: {problem}: No such file or directory."
            elif isinstance(node, dict):
                yield f"cat: {' '.join(arguments)}: Is a directory"
            else:
                yield str(node)

    def find(self, arguments: Sequence[str]) -> Iterator[str]:
        for path in arguments or ["."]:
            for _, problem, node in self._resolve([path]):
                if node is None:
                    yield f"find: {problem}: no such file or directory."
                else:
                    yield from _paths(path.rstrip("/") or "/", node)

    def tree(self, arguments: Sequence[str]) -> Iterator[str]:
        for _, problem, node in self._resolve(arguments or ["."]):
            if node is None:
                yield f"tree: {problem}: No such file or directory."
            else:
                yield from _tree(node, "")

    def cd(self, arguments: Sequence[str]) -> Iterator[str]:
        for _, problem, node in self._resolve(list(arguments[:1]) or ["/"]):
            if problem:
                yield f"cd: {problem}: no such file or directory."
            elif not isinstance(node, dict):
                yield f"cd: {arguments[0]}: not a directory."
            else:
                self.working_directory = self._parts(arguments[0] if arguments else "/")

    def pwd(self, _arguments: Sequence[str]) -> Iterator[str]:
        yield "/" + "/".join(self.working_directory)

    def print_history(self, _arguments: Sequence[str]) -> Iterator[str]:
        for number, line in enumerate(self.history):
            yield f"{number:5}  {line}"

    def help(self, _arguments: Sequence[str]) -> Iterator[str]:
        yield "Welcome to the metadata shell. You can:"
        for name, (_, description) in COMMANDS.items():
            yield f"  {name:8} {description}"
        yield "  exit     exit the shell."

    def _resolve(self, paths: Sequence[str]) -> Iterator[tuple[str, str, Node | None]]:
        """Yields name, path without a match, and node of each match of the patterns."""
        for path in paths:
            matches = list(self._matching(self._parts(path)))
            if not matches:
                yield "", path, None
            for parts, node in matches:
                yield parts[-1] if parts else "/", "", node

    def _matching(self, parts: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Node]]:
        matches: list[tuple[tuple[str, ...], Node]] = [((), self._root)]
        for part in parts:
            matches = [
                ((*before, name), node[name])
                for before, node in matches
                if isinstance(node, dict)
                for name in sorted(node)
                if name == part or fnmatchcase(name, part)
            ]
        return iter(matches)

    def _at(self, parts: Sequence[str]) -> Node | None:
        return next((node for _, node in self._matching(parts)), None)

    def _parts(self, path: str) -> tuple[str, ...]:
        """Returns the names from the root on, with `.` and `..` resolved."""
        parts = [] if path.startswith("/") else list(self.working_directory)
        for name in path.split("/"):
            if name == "..":
                parts = parts[:-1]
            elif name not in ("", "."):
                parts.append(name)
        return tuple(parts)


def _paths(path: str, node: Node) -> Iterator[str]:
    yield path
    if isinstance(node, dict):
        for name in sorted(node):
            yield from _paths(f"{path.rstrip('/')}/{name}", node[name])


def _tree(node: Node, indent: str) -> Iterator[str]:
    if isinstance(node, dict):
        for name in sorted(node):
            yield f"{indent}{name}:"
            yield from _tree(node[name], indent + "  ")
    else:
        yield f"{indent}{node}"


Command = Callable[[MetadataShell, Sequence[str]], Iterator[str]]

COMMANDS: dict[str, tuple[Command, str]] = {
    "cat": (MetadataShell.cat, "print files."),
    "cd": (MetadataShell.cd, "change the working directory."),
    "find": (MetadataShell.find, "list a directory recursively."),
    "help": (MetadataShell.help, "print this help."),
    "history": (MetadataShell.print_history, "print the command history."),
    "ls": (MetadataShell.ls, "list a directory."),
    "pwd": (MetadataShell.pwd, "print the working directory."),
    "tree": (MetadataShell.tree, "print directories and files recursively."),
}
