import subprocess
import tensorflow as tf

for command in commands:
    subprocess.run(command, check=True)
