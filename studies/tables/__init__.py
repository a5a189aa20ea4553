"""Tables of labelled architectures: reading them, and training, adapting and teaching models with them."""
