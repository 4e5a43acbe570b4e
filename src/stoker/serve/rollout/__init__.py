"""Comparing a new version with the old one: how each answers the same requests.

| module | subject |
|---|---|
| evidence | whether two versions answer alike, decided while the answers come, at a stated rate of false alarms |
| changes | two versions' answers to the same rows: which rows changed, and by how much |
| recordings | requests with their answers, as the server records them and `replay` reads them |
| shadow | a candidate that a server asks beside the version that answers |
| replay | sending recorded requests again |
"""
