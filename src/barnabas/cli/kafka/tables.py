"""Tables as kafka-transactions and kafka-metadata-quorum print them: padded cells, and tabs."""

from collections.abc import Sequence


def print_tabbed(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[*head], *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        print("".join(f"{cell.ljust(width)}\t" for cell, width in zip(row, widths, strict=True)))
