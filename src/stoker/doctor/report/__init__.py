"""Show a record: one module for each format, each a function of the record alone.

| module | subject |
|---|---|
| console, live | the ledger on the terminal; the one line while the program runs |
| memory | who owns the device's memory |
| forecast | how much memory a program will need, on the terminal |
| trace | a trace for Perfetto |
| output | write any of these, or the record for other programs, where the user asked |
| page/ | one self-contained HTML page |
| run_table | runs of the store on the terminal |
| terminal | untrusted text on the terminal, made harmless |
| goodput | where the time of a job went, over all its restarts |
| comparison, whatif | a comparison of two sides of runs; the answer of `stoker whatif` |
| tuning | what `stoker tune` found |
| problems, rule_page | what `stoker check` found, in each format; a rule's page |
| line_prices | what a line costs according to saved runs |
| words, headline | figures and accounts in words; the sentence at the top |
"""
