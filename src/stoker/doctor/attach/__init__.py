"""How Stoker gets into a program: patches, the stack, the buffer slot of a C type, and what Stoker's loops announce.

| module | subject |
|---|---|
| patching | replacing functions, and putting them back |
| sites | which files are the user's, and which of their lines a call came from |
| gently | long loops of Stoker's that let the program run in between |
| frames | tracebacks without Stoker's frames |
| buffer_slot | the C buffer slot by which NumPy reads a tensor |
| announced | what Stoker's own loops tell the probes |
"""
