"""Training on labelled texts: configs, batches, losses, optimisers, and runs that go on after a stop."""
