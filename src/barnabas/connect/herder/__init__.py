"""Which instance runs which connector, and what state it is in."""
