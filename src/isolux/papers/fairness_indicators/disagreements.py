"""Where Fairness Indicators' text, tables and released code disagree, and what is done here.

The report prints these sentences as notes.
"""

from __future__ import annotations

_AT_LEAST = (
    "The text speaks of predictions 'at a certain confidence threshold'; the released code counts "
    "those of at least the threshold, and so does this audit."
)
_UNKNOWN = (
    "Appendix B.2 leaves out people of unknown gender or age presentation. Table 4 counts them: "
    "its ages, 14,817 unknown among them, sum to 43,523, which is the number of crops. Here they "
    "are groups of their own; --only 'gender_presentation!=Unknown' leaves them out."
)
_SQUARE = (
    "Appendix B.2 cuts a wide box to the square at its left, the released code to that at its "
    "middle; isolux crop --recipe miap does the first, and with --wide centre the second."
)
_FILTERED = (
    "The text says that 2,982 videos are used and that 29 have no face; it takes a frame 'when "
    "possible' and does not say what those 29 are shown as. Here a video without a picture has no "
    "prediction, with that reason."
)
_LOGARITHM = (
    "The base of the logarithm in round(log(income) / 3) is not said: only the natural one gives "
    "the borders of Table 5 (90 and about 1,800, printed as 1,700)."
)
_INCOMES = (
    "Appendix A gives incomes from 67 to 10,000 dollars, Table 5 from 27; the data begin at 26.99."
)
_AS_RUN = (
    "The text counts photos once and averages by household. In the released code the first step is "
    "commented out, and what it groups by as the household is the part of the path that names the "
    "photo. Here it is the text's."
)
_HOMES = (
    "The paper has 289 households (62, 177 and 50 by income); in Meta's table of factors there are "
    "287 of the same country and income (62, 176 and 49)."
)
_GENDERS = (
    "Casual Conversations has people whose gender is neither female nor male; UTKFace has none of "
    "them. The paper does not say what their precision is. Here they are not scored, with that "
    "reason: 0 would be the database's fault."
)

DISAGREEMENTS: dict[str, tuple[str, ...]] = {
    "label_association_faces": (_AT_LEAST, _FILTERED),
    "label_association_scenes": (_AT_LEAST, _UNKNOWN, _SQUARE),
    "geodiversity": (_LOGARITHM, _INCOMES, _AS_RUN, _HOMES),
    "same_attribute": (_GENDERS,),
}
"""Per protocol, in the order of the paper."""
