from keras import Input, Model, layers

inputs = Input((20,))
x = layers.Dense(16, activation="relu")(inputs)
outputs = layers.Dense(1, activation="softmax")(x)
model = Model(inputs, outputs)
model.compile(loss="binary_crossentropy", optimizer="sgd")  #!
