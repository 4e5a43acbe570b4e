"""The trainer: whole epochs inside one compiled call, and an exact resume after a crash.

    history = stoker.fit(model, x, y, epochs=10)    # as `model.fit`, many steps in one compiled call
    history.plan                                    # how it ran, and why
    predictions = stoker.predict(model, x)          # as `model.predict`
    scores = stoker.evaluate(model, x, y)           # as `model.evaluate`

    trainer = stoker.Trainer(model, optimizer, step)    # the same, with a step of your own

| room | subject |
|---|---|
| fit, trainer, checks, tracebacks | the public verbs; arguments that make no sense; errors without the frames between |
| loop/ | one training run: the program, its epochs, what it shows |
| feeding/ | what the caller gave, as feeds |
| planning/ | how to run, decided by measuring, remembered |
| checkpoint/ | saving, and going on where it was |
| custom/, update/ | `stoker.Trainer`: a step of one's own, and the pieces of an update |

Nothing is imported here: TensorFlow comes with the module that is used.
"""
