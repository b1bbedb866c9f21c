from barnabas.wire.records.batch import Readable

COMPILED: bool

def crc_by_table(buffer: Readable) -> int: ...
