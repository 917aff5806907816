"""The commands `isolux curate` and `isolux withdraw`: their modules are entry points."""
