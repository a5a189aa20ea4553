"""The model: an encoder of text tokens, a decoder of numbers digit by digit, and readouts (kernel machines)."""
