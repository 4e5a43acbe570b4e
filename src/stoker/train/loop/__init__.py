"""One training run: the program that is trained, its epochs, and what it shows."""
