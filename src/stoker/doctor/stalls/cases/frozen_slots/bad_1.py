model.compile("adam", "mse")
model.fit(x, y)
base.trainable = False
model.fit(x, y)
