from tensorflow import keras

train = keras.utils.image_dataset_from_directory("photos", image_size=(180, 180), batch_size=32)
model.fit(train, epochs=2)
