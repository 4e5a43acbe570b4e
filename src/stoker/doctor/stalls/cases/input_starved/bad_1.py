dataset = files.map(decode).batch(32)
