"""Output of the subcommands: tables or JSON, and a progress bar."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click


class Display:
    """Prints results as a table or a sentence, or as JSON."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def print_table(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        if self.as_json:
            keys = [column.lower().replace(" ", "_") for column in head]
            self.print_json([dict(zip(keys, row, strict=True)) for row in rows])
        elif sys.stdout.isatty():
            _draw(head, rows)
        else:
            _align(head, rows)

    def print_result(self, line: str, **fields: object) -> None:
        """Prints one result: `line`, or its `fields` as JSON."""
        if self.as_json:
            self.print_json(fields)
        else:
            click.echo(line)

    def print_json(self, value: object) -> None:
        click.echo(json.dumps(value, default=str))


def _draw(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, header_style="bold cyan", pad_edge=False, padding=(0, 1, 0, 0)
    )
    for column, name in enumerate(head):
        numbers = bool(rows) and all(isinstance(row[column], int) for row in rows)
        whole = [*name.split(), *(str(row[column]) for row in rows if numbers)]
        table.add_column(
            name,
            justify="right" if numbers else "left",
            overflow="fold",
            min_width=max(map(len, whole)),  # a narrow terminal folds texts only
        )
    for row in rows:
        table.add_row(*("-" if cell is None else str(cell) for cell in row))
    Console().print(table)


def _align(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [list(head), *(["-" if cell is None else str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def count_of(number: int, noun: str) -> str:
    """Returns `1 record`, or `2 records`."""
    return f"{number} {noun if number == 1 else f'{noun}s'}"


Advance = Callable[[int], None]
"""Sets the completed amount."""


@contextmanager
def progress_bar(of: str, total: int) -> Iterator[Advance]:
    """Shows a progress bar on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    with bar:
        task = bar.add_task(of, total=total)
        yield lambda done: bar.update(task, completed=done)
