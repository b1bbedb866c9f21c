"""The image that a file of the metadata log leads to."""

from pathlib import Path
from typing import NamedTuple

from barnabas.cli.work.dump.records import batches
from barnabas.cli.work.refused import Refused
from barnabas.metadata.delta import Delta
from barnabas.metadata.frames import decode_record
from barnabas.metadata.image import Image
from barnabas.metadata.loader import Loader
from barnabas.wire.errors import KafkaError, ProtocolViolation
from barnabas.wire.records.batch import crc_is_valid
from barnabas.wire.records.read import read_records


class Read(NamedTuple):
    image: Image
    timestamp_ms: int
    """Of the last batch."""


def read_image(path: Path) -> Read:
    """What the cluster knew at the end of a .checkpoint or a .log file of __cluster_metadata."""
    loader, last_ms = Loader(Image()), 0
    try:
        for _, header, content in batches(path, path.stat().st_size):
            if not crc_is_valid(content, 0, header):
                raise Refused(f"{path} is damaged: the batch at offset {header.base_offset}")
            last_ms = header.max_timestamp
            records = [] if header.is_control else read_records(content)
            decoded = [decode_record(each.value or b"") for each in records]
            loader.load(decoded, header.last_offset, header.leader_epoch, Delta())
    except (KafkaError, ProtocolViolation) as malformed:
        raise Refused(f"{path} holds no cluster metadata: {malformed}") from None
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None
    return Read(loader.image, last_ms)
