"""The tables of docs/client-settings.md, generated from the names of the settings.

To update the page, run `python -m tests.client.settings_page`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.client.settings import AdminSettings, ConsumerSettings, ProducerSettings, names

PAGE = Path(__file__).parents[2] / "docs" / "client-settings.md"

SECTIONS = {
    "connections": (names.CONNECTION, ConsumerSettings),
    "producers": (names.PRODUCER, ProducerSettings),
    "consumers": (names.CONSUMER, ConsumerSettings),
    "admin clients": (names.ADMIN, AdminSettings),
}


def tables() -> dict[str, str]:
    """Returns the tables by heading."""
    made = {heading: "\n".join(_rows(*section)) for heading, section in SECTIONS.items()}
    return made | {"no effect": "\n".join(_idle())}


def with_tables(page: str) -> str:
    """Returns the page with its tables generated anew."""
    for heading, table in tables().items():
        begin, end = f"<!-- {heading} -->\n", "<!-- end -->"
        pattern = f"({re.escape(begin)}).*?({end})"
        page = re.sub(
            pattern, lambda found, t=table: f"{found[1]}{t}\n{found[2]}", page, flags=re.DOTALL
        )
    return page


def _rows(meanings: names.Names, resolved: Any) -> Iterator[str]:
    yield "| names | default |"
    yield "| --- | --- |"
    defaults = {field.name: field.default for field in dataclasses.fields(resolved)}
    for field, known in meanings.items():
        shown = ", ".join(
            f"or else `{name}`" if isinstance(name, names.FallbackName) else f"`{name}`"
            for name in known
        )
        default = defaults[field]
        if known[0].endswith(".kbytes"):
            default //= 1024
        yield f"| {shown} | {_shown(default)} |"


def _shown(default: Any) -> str:
    match default:
        case None | () | "":
            return ""
        case bool():
            return str(default).lower()
        case tuple():
            return ", ".join(default)
        case int() if abs(default) >= 10_000:
            return f"{default:_}"
        case _:
            return str(default)


def _idle() -> Iterator[str]:
    for reason, idle in names.NO_EFFECT.items():
        is_code = "()" in reason.split()[0]
        sentence = reason if is_code else reason[0].upper() + reason[1:]
        yield f"- {sentence}: {', '.join(f'`{name}`' for name in idle)}."


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
