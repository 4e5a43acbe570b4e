"""What training and inference share: compiled loops and their cache, the length of a call, callbacks.

| module | subject |
|---|---|
| feed, loop | where batch `i` comes from, inside the graph; many steps in one compiled call |
| traced, staleness | a model's traced steps, kept on the model for as long as they match the model |
| call_length | how many steps a call runs |
| hooks | Keras' callbacks, and which of them want every batch |
| structures | nested data taken apart and put together |
"""
