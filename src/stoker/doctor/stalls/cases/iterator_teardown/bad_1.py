for epoch in range(100):
    for batch in dataset:
        train_step(batch)
