"""What `stoker runs` can do with runs: one module an action; its docstring is its help."""
