"""Tables of any size: read in batches, converted and counted in parts."""
