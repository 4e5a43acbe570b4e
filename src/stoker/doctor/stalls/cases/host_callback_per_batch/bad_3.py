from keras.callbacks import LambdaCallback

show = LambdaCallback(on_batch_end=lambda batch, logs: print(batch, logs))  #!
