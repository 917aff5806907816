"""Withdrawal: find a person in every file, row and task, delete them, and write a receipt.

One module recognises ids and file names in cells, texts and paths, two collect them (from tables
and images, and from the project's database), one plans the withdrawal, ``rewriting`` has one
rewriter for each file format, one keeps the state of an interrupted withdrawal, and one runs all
steps in order. Source: FHIBE (Sony AI 2025), Methods, "Consent revocation".
"""
