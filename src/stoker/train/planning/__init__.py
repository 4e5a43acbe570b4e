"""How to run, decided by measuring: resident or streamed, XLA or not; and what was decided before."""
