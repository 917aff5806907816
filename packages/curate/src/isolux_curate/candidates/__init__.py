"""Before photos come in: which classes of people, which photos to look at, from which countries.

Sources: Gustafson et al. (2023), sections 3 and 5.1 and appendix A.2.1 (FACET: concepts of WordNet,
candidates from captions and tags); Kärkkäinen & Joo (2021), section 3.2 (FairFace: countries). No
model looks at a photo: what a model does not see would never come in.
"""
