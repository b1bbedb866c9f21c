"""Every setting: name, type, default, check, and who may change it when."""
