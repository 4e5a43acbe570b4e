"""The ledger: raw measurements folded into accounts that sum to the wall time, and the device's own book."""
