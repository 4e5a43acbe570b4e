"""The door into the program's process. Nothing here is imported by Stoker itself."""
