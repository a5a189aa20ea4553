"""Tables of any size, which are read in batches and converted in parts."""
