for step, batch in enumerate(dataset):
    train_step(batch)
    if rank == 0:
        write_summaries(step)
