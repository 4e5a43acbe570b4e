"""`stoker check` without the rules: what a rule is made of, and how files are checked by all of them.

| module | subject |
|---|---|
| source | what the code says: light abstract interpretation, without TensorFlow |
| rule, edits | what a rule is; the text edits it proposes |
| chains, models | questions several rules ask: of a pipeline, of a Keras model |
| gradients, hoisting | what a safe fix must know first: who else uses these gradients, who may change this array |
| registry | every rule there is |
| checker, cache | many files, in parallel; results of files that did not change |
"""
