"""Places in a reader's data, saved when shuffles had other orders, and the runs they belong to."""
