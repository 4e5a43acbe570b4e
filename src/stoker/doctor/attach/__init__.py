"""How Stoker gets into a program: patches, the stack, the one slot of a C type, and what its own loops announce.

| module | subject |
|---|---|
| patching | replacing functions, and putting them back |
| sites | who is the user: which line a call came from |
| gently | long loops of ours that let the program run in between |
| frames | tracebacks without our frames |
| buffer_slot | the C buffer slot by which NumPy reads a tensor |
| announced | what Stoker's own loops tell the probes |
"""
