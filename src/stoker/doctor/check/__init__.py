"""`stoker check` without the rules themselves: what rules are built from, and how files are checked against them.

| module | subject |
|---|---|
| source | what the code does, found by light abstract interpretation, without TensorFlow |
| rule, edits | what a rule is; the text edits it proposes |
| chains, models | questions about a pipeline or a Keras model that several rules ask |
| gradients, hoisting | what makes a fix safe: nothing else uses these gradients, nothing changes this array |
| registry | the list of all rules |
| checker, cache | check many files in parallel; keep the results of unchanged files |
"""
