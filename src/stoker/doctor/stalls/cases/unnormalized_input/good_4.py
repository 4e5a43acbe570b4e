from tensorflow import keras

train = keras.utils.image_dataset_from_directory("flowers", image_size=(224, 224))
inputs = keras.Input((224, 224, 3))
x = keras.applications.efficientnet.EfficientNetB0(include_top=False)(inputs)
model = keras.Model(inputs, keras.layers.Dense(5)(x))
model.fit(train, epochs=3)
