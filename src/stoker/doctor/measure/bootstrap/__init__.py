"""The door into the program's process: `sitecustomize`, which Python imports before the program. Stoker itself imports
nothing from here.

Why a child process and `sitecustomize`: the program is started by Python itself, so `__main__`, `sys.argv`,
tracebacks, `multiprocessing`, exit codes and signals are native, and nothing is imitated. The parent outlives every
kind of death (SIGKILL, `os._exit`, a segfault) and prints the ledger last.
"""
