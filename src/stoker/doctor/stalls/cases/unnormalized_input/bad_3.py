from tensorflow import keras

train = keras.utils.image_dataset_from_directory("flowers", image_size=(180, 180))
inputs = keras.Input((180, 180, 3))
x = keras.layers.Conv2D(16, 3)(inputs)
model = keras.Model(inputs, keras.layers.Dense(5)(x))
model.fit(train, epochs=3)  #!
