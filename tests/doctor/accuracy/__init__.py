"""How often `stoker check` is right: programs written after patterns of public code, labelled by reading."""
