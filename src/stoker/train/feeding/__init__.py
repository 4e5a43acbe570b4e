"""Data on its way into the step: what the caller gave, as feeds that give batch `i` inside the graph."""
