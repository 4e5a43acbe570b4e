"""What the code says: files, parsed modules, names, which values are tensors, which loops are hot.

    module = parse("train.py", text)
    analysis = analyse(module, Project())
    for fact in analysis.facts: ...

Nothing here runs the program or imports TensorFlow.
"""
