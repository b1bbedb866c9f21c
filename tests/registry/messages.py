"""Protobuf classes for tests, created without a compiler: a chain of three files."""

from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import Parse
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP

_ADDRESS = """
name: "shop/address.proto" package: "shop" syntax: "proto3"
message_type {
  name: "Address"
  field { name: "city" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
}
"""
_CUSTOMER = """
name: "shop/customer.proto" package: "shop" syntax: "proto3"
dependency: "shop/address.proto"
message_type {
  name: "Customer"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "address" number: 2 type: TYPE_MESSAGE type_name: ".shop.Address" label: LABEL_OPTIONAL }
}
"""  # noqa: E501
_ORDER = """
name: "shop/order.proto" package: "shop" syntax: "proto3"
dependency: "shop/customer.proto"
dependency: "google/protobuf/timestamp.proto"
message_type {
  name: "Empty"
}
message_type {
  name: "Order"
  field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "customer" number: 2 type: TYPE_MESSAGE type_name: ".shop.Customer" label: LABEL_OPTIONAL }
  field { name: "at" number: 3 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }
  nested_type {
    name: "Line"
    field { name: "item" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  }
}
"""  # noqa: E501

_pool = DescriptorPool()
_pool.AddSerializedFile(TIMESTAMP.serialized_pb)
for _text in (_ADDRESS, _CUSTOMER, _ORDER):
    _pool.Add(Parse(_text, FileDescriptorProto()))


def _class(name: str) -> Any:
    return GetMessageClass(_pool.FindMessageTypeByName(name))


Address = _class("shop.Address")
Customer = _class("shop.Customer")
Empty = _class("shop.Empty")
Order = _class("shop.Order")
Line = _class("shop.Order.Line")
