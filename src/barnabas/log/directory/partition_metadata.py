"""The `partition.metadata` file in a partition's folder: the id of its topic.

Two lines of text, `version: 0` and `topic_id: ` with the id in Kafka's text form.
"""

from barnabas.wire import uuid

FILE_NAME = "partition.metadata"


def write(folder: str, topic_id: bytes) -> None:
    """Writes the file without syncing it: opening the log writes a lost one again."""
    content = f"version: 0\ntopic_id: {uuid.to_text(topic_id)}".encode()
    with open(f"{folder}/{FILE_NAME}", "wb", buffering=0) as file:
        file.write(content)


def read(folder: str) -> bytes | None:
    """Returns the topic id; None if there is no whole file."""
    try:
        with open(f"{folder}/{FILE_NAME}", encoding="ascii") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    try:
        return uuid.from_text(fields["topic_id"]) if fields.get("version") == "0" else None
    except (KeyError, ValueError):
        return None
