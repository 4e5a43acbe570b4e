"""The checker inside an editor: a language server that reports findings while one types (`stoker lsp`).

| module | subject |
|---|---|
| documents | the open documents and what was found in them, checked again as they change |
| messages | findings in the protocol's words: diagnostics, code actions, hovers |
| server | the server itself: which message does what, and when a change is checked |

Nothing here imports TensorFlow. `documents` needs nothing but the checker; the other two need the extra `stoker[lsp]`.
"""
