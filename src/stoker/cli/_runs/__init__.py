"""The actions of `stoker runs`: one module for each, whose docstring is its help."""
