"""The network: text tokens to states to numbers, digit by digit, and objectives that are read off a text at once."""
