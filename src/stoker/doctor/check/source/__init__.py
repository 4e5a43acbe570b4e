"""Analyse source code: files, parsed modules, names, which values are tensors, which loops are hot.

    module = parse("train.py", text)
    analysis = analyse(module, Project())
    for fact in analysis.facts: ...

| module | subject |
|---|---|
| files, notebook, comments | which files to read; notebooks as Python; allow-comments |
| module, project, names, imports | one parsed file; which file an import means; canonical library names |
| analysis, machine, frames | light abstract interpretation of one file: what is run, and with what state |
| statements, binding, expressions, operators, attributes | the syntax, piece by piece |
| calls, arguments, functions, classes, builtin_calls, containers | calls of the program's code and of Python's |
| library, keras_calls, numpy_calls, tensors, things, pipelines | what is known of TensorFlow, Keras and NumPy |
| values | what an expression may be |
| loops, gates, reads, guesses | which loops step; which branches are rare; where a tensor is read; what names suggest |
| options | the defaults of command-line options |
| facts | the observations that the rules judge |

Nothing here runs the program or imports TensorFlow.
"""
