model.fit(train.batch(64), validation_data=held_out.batch(64))
