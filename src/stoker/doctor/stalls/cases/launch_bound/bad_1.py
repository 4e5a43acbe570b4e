for batch in dataset:
    train_step(batch)
