"""How a record is shown: one module per format, each a function of the record alone.

| module | subject |
|---|---|
| console, live | the ledger on the terminal; the one line while the program runs |
| memory | who owns the device's memory |
| forecast | what a program will need of it, on the terminal |
| trace | a trace for Perfetto |
| output | writing any of these, or the record for other programs, where the user asked |
| page/ | one self-contained HTML page |
| run_table | runs of the store on the terminal |
| terminal | text of others on the terminal, made harmless |
| goodput | where the time of a job went, over all its restarts |
| comparison, whatif | two sides of runs; the answer of `stoker whatif` |
| tuning | what `stoker tune` found |
| problems, rule_page | what `stoker check` found, in each format; a rule's page |
| line_prices | what saved runs say a line costs |
| words, headline | figures and accounts in words; the sentence at the top |
"""
