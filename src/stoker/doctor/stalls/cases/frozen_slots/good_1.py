model.compile("adam", "mse")
model.fit(x, y)
base.trainable = False
model.compile("adam", "mse")
model.fit(x, y)
