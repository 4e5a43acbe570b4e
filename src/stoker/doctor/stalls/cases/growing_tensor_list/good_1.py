mean = keras.metrics.Mean()
for x, y in dataset:
    loss, out = train_step(x, y)
    mean.update_state(out)
