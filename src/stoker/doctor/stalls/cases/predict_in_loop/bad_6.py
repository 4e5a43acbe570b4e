from keras.models import load_model

model = load_model("m.h5")
results = [model.predict(row) for row in rows]  #!
