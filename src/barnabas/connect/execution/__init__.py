"""What runs in a task of a connector, and what plans and commits it in the driver."""
