for step, batch in enumerate(dataset):
    train_step(batch)
    manager.save()
