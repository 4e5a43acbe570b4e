"""`stoker.fit_many`: many members of one architecture, trained in one compiled loop over the same batches.

| module | subject |
|---|---|
| members | the models that `make_model` returns, and which of them are refused |
| callbacks | each member's own callbacks and history; which members have stopped |
| program | the members as one program: its loops, its course, the state that a checkpoint keeps |
| group | members whose steps agree, and their variables on one stack |
| tracing | each member's traced step; a member that is sure to give the same trace is not traced again |
| stacked_step, rules, member_values | a step computed for all members at once, with the bits of each one's own |
| derived_steps | a member's step derived from those of two others, if only numbers of its config differ |
| flat_step | a traced step as a list of pure instructions |
"""
