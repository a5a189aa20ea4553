"""Training on labelled texts: configs, batches, losses, optimisers, and runs that can be resumed."""
