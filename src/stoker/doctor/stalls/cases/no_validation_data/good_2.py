from tensorflow import keras

model = keras.Sequential([keras.layers.Dense(1)])
model.fit(x, y, epochs=5)
print(model.evaluate(x_test, y_test))
