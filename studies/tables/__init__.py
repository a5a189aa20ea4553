"""Tables of labelled architectures: how they are read, and what is trained, adapted and taught by them."""
