"""Our own client, by the adapters of confluent-kafka with nothing but the import changed."""

from pathlib import Path

from tests.import_changed import load_changed

_HERE = Path(__file__).parent
_THEIRS = "tests.conformance.clients.confluent"
_OURS = "tests.conformance.clients.barnabas"
_SIBLINGS = {_THEIRS + part: _OURS + part for part in ("", "_groups", "_transactions")}


def _load(part: str) -> object:
    return load_changed(_HERE / f"confluent{part}.py", _OURS + part, _SIBLINGS)


BarnabasClient = _load("").ConfluentClient  # type: ignore[attr-defined]
BarnabasGroups = _load("_groups").ConfluentGroups  # type: ignore[attr-defined]
BarnabasTransactions = _load("_transactions").ConfluentTransactions  # type: ignore[attr-defined]
