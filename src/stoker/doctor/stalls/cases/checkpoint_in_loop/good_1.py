for step, batch in enumerate(dataset):
    train_step(batch)
    if step % 1000 == 0:
        manager.save()
