"""Saving a training run, and going on where it was, bit for bit."""
