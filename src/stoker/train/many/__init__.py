"""`stoker.fit_many`: many members of one architecture, trained in one compiled loop over the same batches.

| module | subject |
|---|---|
| members | the models that `make_model` gives, and what is refused of them |
| callbacks | each member's own callbacks and history; who has stopped |
| program | the members as one program: its loops, its course, what a checkpoint keeps |
| group | members whose steps agree, and their variables on one stack |
| tracing | each member's step, traced; not again for a member that is sure to give the same |
| stacked_step, rules, member_values | a step computed for all members at once, with the bits of each one's own |
| derived_steps | the step of a member from those of two others, if only numbers of its config differ |
| flat_step | a traced step as a list of pure instructions |
"""
