"""The door into the program's process: `sitecustomize`, which Python imports before the program.

Stoker itself imports nothing from here.

Why a child process and `sitecustomize`: Python itself starts the program, so `__main__`, `sys.argv`, tracebacks,
`multiprocessing`, exit codes and signals are native, and nothing is imitated. The parent survives however the program
dies (SIGKILL, `os._exit`, a segfault), and prints the ledger last.
"""
