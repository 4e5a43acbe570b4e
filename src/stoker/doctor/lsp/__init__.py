"""The checker inside an editor: a language server that reports findings as you type (`stoker lsp`).

| module | subject |
|---|---|
| documents | the open documents and their findings, checked again as the documents change |
| messages | findings as messages of the protocol: diagnostics, code actions, hovers |
| server | the server itself: which message does what, and when a change is checked |

Nothing here imports TensorFlow. `documents` needs only the checker; the other two need the extra `stoker[lsp]`.
"""
