"""`stoker.Trainer` inside: a step of the user's own, its parts, its state, and what the epochs see of it."""
