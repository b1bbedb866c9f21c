"""The tables of settings on docs/connectors.md, made from the classes of the connectors.

python -m tests.documents.connector_settings      # writes them into the page
"""

import re
from collections.abc import Iterable
from pathlib import Path

from barnabas.connect.config_def import ConfigDef, ConnectorSetting
from barnabas.connect.plugins import find_plugin
from barnabas.connect.validated_config import shown_value

PAGE = Path(__file__).parents[2] / "docs" / "connectors.md"

_TABLE = re.compile(
    r"(<!-- settings of ([^ ]+)(?: without ([^ ]+))? -->\n)(.*?)(<!-- end -->)", re.S
)


def with_tables(page: str) -> str:
    """Returns the page with the tables that the classes have."""

    def table(match: re.Match[str]) -> str:
        head, name, without, _, end = match.groups()
        left_out = {setting.name for setting in _config_def(without)} if without else set()
        settings = [each for each in _config_def(name) if each.name not in left_out]
        return f"{head}{_rows(settings)}{end}"

    return _TABLE.sub(table, page)


def connectors_on(page: str) -> list[str]:
    return [match[2] for match in _TABLE.finditer(page)]


def _config_def(name: str) -> ConfigDef:
    found, _ = find_plugin(name)
    config_def: ConfigDef = found.config_def()
    return config_def


def _rows(settings: Iterable[ConnectorSetting]) -> str:
    rows = [_row(setting) for setting in settings]
    return "\n".join(["| setting | type | default | |", "| --- | --- | --- | --- |", *rows, ""])


def _row(setting: ConnectorSetting) -> str:
    shown = "required"
    if not setting.is_required:
        default = shown_value(setting.default, setting.type)
        shown = f"`{_escaped(default)}`" if default else ""
    doc = setting.doc.replace("|", "\\|")
    return f"| `{setting.name}` | {setting.type.lower()} | {shown} | {doc} |"


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
