import tensorflow as tf

for epoch in range(100):
    for x, y in train_ds:
        with tf.GradientTape() as tape:  #!
            logits = model(x, training=True)
            loss = loss_fn(y, logits)
        grads = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(grads, model.trainable_weights))
