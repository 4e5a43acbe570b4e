from tensorflow import keras

train = keras.utils.image_dataset_from_directory("flowers", image_size=(180, 180))
model = keras.Sequential([keras.layers.Rescaling(1 / 255), keras.layers.Conv2D(16, 3)])
model.fit(train, epochs=3)
