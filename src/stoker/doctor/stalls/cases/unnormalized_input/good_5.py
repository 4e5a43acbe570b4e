from tensorflow import keras

(x, y), _ = keras.datasets.imdb.load_data(num_words=10000)
model = keras.Sequential([keras.layers.Embedding(10000, 16), keras.layers.Dense(1)])
model.fit(x, y)
