"""The checker inside an editor."""
