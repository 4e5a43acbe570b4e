"""From measurements to findings: one module per subject, each a pure function from measurements to drafts."""
