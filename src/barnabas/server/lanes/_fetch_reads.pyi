from collections.abc import Hashable

from barnabas.server.lanes._fetch_request import PartitionRead, PlainFetchRequest

class PlainFetch:
    request: PlainFetchRequest
    results: dict[Hashable, PartitionRead]
    is_complete: bool
