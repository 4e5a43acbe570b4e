from tensorflow import keras

models = [keras.models.load_model(path) for path in paths]
votes = [model.predict(x_test) for model in models]
