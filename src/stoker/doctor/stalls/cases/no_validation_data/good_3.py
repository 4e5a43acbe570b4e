from tensorflow import keras

model = keras.Sequential([keras.layers.Dense(1)])
model.fit(x, y, epochs=5, **options)
