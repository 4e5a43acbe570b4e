from tensorflow.keras import backend as K

for image in images:
    get_output = K.function([model.input], [model.layers[3].output])  #!
    activations.append(get_output([image])[0])
