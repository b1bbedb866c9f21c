"""Describes the differences of two JSON schemas in words."""

import re
from typing import Final

from barnabas.schemas import Incompatibility
from barnabas.schemas.comparison import SchemaDifference


def describe_difference(difference: SchemaDifference) -> Incompatibility:
    path = "#/" + "/".join(difference.path)
    meaning = next(
        words for pattern, words in _MEANINGS if re.fullmatch(pattern, difference.error_type)
    )
    return Incompatibility(difference.error_type, f"At path '{path}' {meaning}", difference.about)


_MEANINGS: Final = (
    (
        "(REQUIRED|OPTIONAL)_PROPERTY_.*ADDED_TO_OPEN_CONTENT_MODEL|ITEM_ADDED_TO_OPEN_.*",
        "the {reader} schema describes what the {writer} schema, with its open content model,"
        " lets be anything",
    ),
    (
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "the {reader} schema requires a property that the {writer} schema does not have",
    ),
    (
        "(PROPERTY|ITEM)_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "the {writer} schema has a property or item that the {reader} schema lacks and, with its"
        " closed content model, forbids",
    ),
    (
        "(PROPERTY|ITEM)_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "the {writer} schema has a property or item that the {reader} schema lacks and does not"
        " cover with its partially open content model",
    ),
    (
        "(PROPERTY|ITEM)_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "the {reader} schema has a property or item that the partially open content model of the"
        " {writer} schema does not cover",
    ),
    (
        "REQUIRED_ATTRIBUTE_ADDED",
        "the {reader} schema requires a property that is optional in the {writer} schema",
    ),
    (
        "(ADDITIONAL|UNEVALUATED)_(PROPERTIES|ITEMS)_REMOVED",
        "the {reader} schema forbids what the {writer} schema lets be added",
    ),
    (
        "(ADDITIONAL|UNEVALUATED)_(PROPERTIES|ITEMS)_NARROWED",
        "the {reader} schema asks more of what is added than the {writer} schema",
    ),
    ("DEPENDENCY_.*", "the {reader} schema asks for more than the {writer} schema"),
    ("ENUM_ARRAY_NARROWED", "the {reader} schema has fewer values than the {writer} schema"),
    ("ENUM_ARRAY_CHANGED", "the {reader} schema lacks values of the {writer} schema"),
    (
        "PRODUCT_TYPE_EXTENDED",
        "more schemas must all fit in the {reader} schema than in the {writer} schema",
    ),
    ("SUM_TYPE_NARROWED", "the {reader} schema has fewer alternatives than the {writer} schema"),
    (
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
        "not each combined schema of the {writer} schema is read by one of the {reader} schema",
    ),
    ("COMBINED_TYPE_CHANGED", "the {reader} and the {writer} schema combine schemas differently"),
    ("NOT_TYPE_EXTENDED", "the {reader} schema excludes more than the {writer} schema"),
    ("TYPE_NARROWED", "the {reader} schema takes whole numbers, the {writer} schema any"),
    ("TYPE_CHANGED", "the type differs between the {reader} and the {writer} schema"),
    (".*_INCREASED", "the value is higher in the {reader} schema than in the {writer} schema"),
    (".*_DECREASED", "the value is lower in the {reader} schema than in the {writer} schema"),
    (".*_ADDED", "the {reader} schema has a keyword that the {writer} schema does not have"),
    (
        ".*_(CHANGED|EXPANDED)",
        "the value of the {reader} schema does not follow from that of the {writer} schema",
    ),
)
