"""Adapters for our own client: those of confluent-kafka with changed imports."""

from pathlib import Path

from tests.confluent_modules import load_with_barnabas_imports

_HERE = Path(__file__).parent
_THEIRS = "tests.conformance.clients.confluent"
_OURS = "tests.conformance.clients.barnabas"
_SIBLINGS = {_THEIRS + part: _OURS + part for part in ("", "_groups", "_transactions")}


def _load(part: str) -> object:
    return load_with_barnabas_imports(_HERE / f"confluent{part}.py", _OURS + part, _SIBLINGS)


BarnabasClient = _load("").ConfluentClient  # type: ignore[attr-defined]
BarnabasGroups = _load("_groups").ConfluentGroups  # type: ignore[attr-defined]
BarnabasTransactions = _load("_transactions").ConfluentTransactions  # type: ignore[attr-defined]
