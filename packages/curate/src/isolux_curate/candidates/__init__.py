"""Before intake: choose classes of people, candidate photos, and numbers of photos by country.

Sources: Gustafson et al. (2023), sections 3 and 5.1 and appendix A.2.1 (FACET: concepts of WordNet,
candidates from captions and tags); Kärkkäinen & Joo (2021), section 3.2 (FairFace: countries). No
model selects photos: people whom a model misses would never be included.
"""
