"""Every line that a node logs is explained on docs/log-lines.md."""

import ast
import re
from collections.abc import Iterator

from tests.documents.pages import ROOT

SOURCE = ROOT / "src" / "barnabas"
PAGE = ROOT / "docs" / "log-lines.md"
NODE_PACKAGES = (
    *("config", "controller", "coordinator", "log", "net", "node", "raft", "registry"),
    *("replication", "security", "server"),
)
LEVELS = {"info", "warning", "error", "critical", "log"}
"""Not `exception`: it reports a bug with a traceback, and the page has one row for all of these."""

MIN_LENGTH = 10
"""The characters of a line that must be on the page: shorter words are on it by chance."""


def messages() -> Iterator[tuple[str, str]]:
    """Yields the file and text, and the text, of every logging statement with a constant text."""
    for package in NODE_PACKAGES:
        for file in sorted((SOURCE / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                text = logged_text(node)
                if text is not None and max(map(len, constant_parts(text))) >= MIN_LENGTH:
                    yield f"{file.relative_to(SOURCE)}: {text}", text


def logged_text(node: ast.AST) -> str | None:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="log" | "_log" | "_logger"), attr=level),
            args=arguments,
        ) if level in LEVELS:
            argument = arguments[1 if level == "log" else 0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                return argument.value
    return None


def constant_parts(text: str) -> list[str]:
    """Returns the parts of a line between its placeholders."""
    return [part.strip(" :;,.()[]'") for part in re.split(r"%[-.\d]*[sdrf]", text)]


def page_parts() -> set[str]:
    """Returns the parts of the lines on the page between their placeholders: N, TOPIC-N, ..."""
    spans = re.findall(r"`([^`]+)`", PAGE.read_text())
    return {
        part
        for span in spans
        for part in (
            each.strip(" :;,.()[]'")
            for each in re.split(r"\.\.\.|(?<![\w.-])[A-Z]+(?:[-:][A-Z]+)*(?![\w.-])", span)
        )
        if len(part) >= MIN_LENGTH
    }


def is_on_page(text: str, on_page: set[str]) -> bool:
    parts = [part for part in constant_parts(text) if len(part) >= MIN_LENGTH]
    return any(part in known or known in part for part in parts for known in on_page)


def test_every_line_that_a_node_logs_is_on_the_page() -> None:
    on_page = page_parts()
    assert [line for line, text in messages() if not is_on_page(text, on_page)] == []
