"""StreamsGroupTopologyDescriptionUpdate (key 93): describe what a streams group runs."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string


class StreamsGroupTopologyDescriptionUpdateRequest(
    Message, api_key=93, versions="0", flexible="0+", listeners="broker"
):
    group_id: string = field()
    member_id: string = field()
    topology_epoch: int32 = field()
    topology_description: TopologyDescription = field()


class TopologyDescription(Struct):
    subtopologies: list[TopologyDescriptionSubtopology] = field()
    global_stores: list[TopologyDescriptionGlobalStore] = field()


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: string = field()
    nodes: list[TopologyDescriptionNode] = field()


class TopologyDescriptionNode(Struct):
    name: string = field()
    node_type: int8 = field()
    source_topics: list[string] = field()
    sink_topic: string | None = field(default=None)
    stores: list[string] = field()
    successors: list[string] = field()


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = field()
    processor: TopologyDescriptionNode = field()


class StreamsGroupTopologyDescriptionUpdateResponse(
    Message, api_key=93, versions="0", flexible="0+"
):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
