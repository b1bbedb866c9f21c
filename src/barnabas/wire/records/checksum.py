"""CRC-32C with the processor's instruction: the extension module of the crc32c package.

Importing the package takes 60 ms and 7 MB, because it looks up its own version. A broker starts in
less than twice that time, so the extension is loaded directly.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any


def _load() -> Callable[[bytes | bytearray | memoryview], int]:
    package = find_spec("crc32c")
    locations = package.submodule_search_locations if package else None
    extension = PathFinder.find_spec("crc32c._crc32c", locations) if locations else None
    if extension is None or extension.loader is None:  # the package has another structure
        from crc32c import crc32c as packaged

        return packaged
    module: Any = module_from_spec(extension)
    extension.loader.exec_module(module)
    loaded: Callable[[bytes | bytearray | memoryview], int] = module.crc32c
    return loaded


crc32c = _load()
