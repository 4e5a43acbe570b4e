import tensorflow as tf

def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))

@tf.function
def epoch(dataset):
    for x, y in dataset:
        step(x, y)

for _ in range(10):
    epoch(train_ds)
