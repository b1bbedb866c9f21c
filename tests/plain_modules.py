"""A plugin of pytest that loads every compiled module as plain Python, as without a compiler.

python -m pytest -p tests.plain_modules tests/server/network
"""

import sys

from tests.uncompiled import PlainModuleFinder

sys.meta_path.insert(0, PlainModuleFinder())
