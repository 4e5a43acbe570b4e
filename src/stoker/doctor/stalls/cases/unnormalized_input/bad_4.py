from keras.datasets import mnist
from keras import Sequential, layers

(x, y), _ = mnist.load_data()
x = x.reshape(60000, 784).astype("float32")
net = Sequential()
net.add(layers.Dense(128, activation="relu"))
net.add(layers.Dense(10, activation="softmax"))
net.fit(x, y, epochs=5)  #!
