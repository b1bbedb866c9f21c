"""The base classes of serializers and deserializers that use a registry's schemas."""
