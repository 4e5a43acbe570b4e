for batch in dataset.repeat(100):
    train_step(batch)
