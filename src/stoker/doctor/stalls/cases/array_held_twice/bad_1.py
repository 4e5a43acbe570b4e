x, y = load_arrays()
dataset = tf.data.Dataset.from_tensor_slices((x, y))
model.fit(dataset.batch(64))
