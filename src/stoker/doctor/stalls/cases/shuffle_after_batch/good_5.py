import tensorflow as tf

dataset = tf.data.Dataset.from_tensor_slices(images).batch(32).prefetch(2)
for batch in dataset.shuffle(8).take(1):
    model(batch)
model.fit(dataset)
