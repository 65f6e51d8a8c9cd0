"""A very small shop: a catalogue, a cart, orders and payments."""
