"""Where FACET's text, its tables and what was released disagree, and what is done here.

One tuple of sentences a protocol; the report prints them as notes. Each was checked on the printed
numbers (``tests/golden/test_facet.py``). Evaluation code is in none of them: the paper describes
its evaluation, and no code of it is known to us, so that matching, ties and ignored people follow
COCO's tool.
"""

from __future__ import annotations

_NO_CODE = (
    "FACET describes its evaluation in words (section 6, appendix A.5); no released code of it is "
    "known to us, so people are matched by COCO's rule, all people of an image together, and put "
    "into groups afterwards."
)
_TONES = (
    "Section 4.1 lets annotators select as many skin tones as they like, section 5.2 and appendix "
    "C.1 at least two adjacent ones; the tables count a person in every tone that one of three "
    "annotators chose, and in unknown too where one could not tell. So does this audit (votes "
    "any+unknown)."
)
_UNKNOWN = (
    "Tables of results leave people of unknown value out, Table 3 counts them; here they are a "
    "group of the audit, and not a row of the paper's tables."
)
_SPELLING = (
    "The data card spells hair_type and has_eyewear, the released table hairtype and has_eyeware; "
    "both are read."
)
_MINIMUM = (
    "The minimum of 50 people is stated for classification alone (A.5.3). Table 15 prints groups "
    "far smaller (by Table 17 of 4 people: climber, older; of 5: astronaut, younger), for Detic a "
    "dash only for older groups, of 7 people or fewer; no minimum is set here. Groups of so few "
    "say little: see their intervals and statuses."
)

_CLASSIFICATION = (
    (
        "Equation 1 is a difference, yet section 6 reads it against 1 (above 1 better for the "
        "first group); it is read against 0 here."
    ),
    (
        "Section 6.1 and A.5.1 keep images of one person, A.5.3 images of one annotated person; "
        "people of none of the 52 classes are not annotated and cannot be counted, so the latter "
        "holds here (only people_in_image=1)."
    ),
    (
        "Any of a person's classes is a right answer (section 6.1), and A.5.2 calls recall the "
        "accuracy of a class and group: a person with two classes is recalled as both by either."
    ),
    (
        "For the true negative rate of one class against the rest only that class counts as given; "
        "the paper does not say how it treats second classes there. The minimum of 50 is applied "
        "to those who are not of the class."
    ),
    (
        "A.5.3 says that Table 12 compares CLIP with a ViT; it compares a ResNet with a ViT, and "
        "Table 11 has CLIP."
    ),
    (
        "The caption of Table 11 says that 2 classes are in both models' top 5; by its own ranks "
        "they are 3 (ballplayer, speaker, laborer)."
    ),
    (
        "Table 12 ranks the class guard 6th for the ViT in its first half and 5th in its second; by"
        " the gaps it is 5th, as in Table 11. Ranks here go by the largest gap between two groups."
    ),
    (
        "Table 3 prints 5% of images with unknown perceived gender presentation where its own "
        "count, 5k of 32k, is about 16%; and 11% of people where the released table has 5,971 of "
        "49,551, 12%."
    ),
    _UNKNOWN,
)
_DETECTION = (
    _NO_CODE,
    _TONES,
    _UNKNOWN,
    _SPELLING,
    (
        "Table 6's caption says that recall is higher for lighter skin for every hair type but "
        "straight and wavy. Of its numbers that holds at no overlap: for mAR and AR.75 only "
        "straight is reversed, at AR.50 all but bald are."
    ),
    (
        "Section 6.2.1 says that the gap for dreads grows 50 times from AR.50 to AR.75; the "
        "printed numbers give 9.1 against 0.2, 45.5 times, and the sign changes: at AR.50 recall "
        "is higher for darker skin."
    ),
    (
        "The paper states no minimum size for detection. All groups that it prints have 50 people "
        "or more, as far as the paper says, so the audit's own minimum of 50 stands."
    ),
)
_SEGMENTATION = (
    _NO_CODE,
    _UNKNOWN,
    (
        "Section 6.2.2 says that gaps are larger for boxes than for masks. Between more "
        "stereotypically male and female attributes that holds for mAR and AR.75 and not for AR.50 "
        "(0.3 against 0.6); with people outside of the gender binary the gaps of masks are the "
        "larger ones throughout."
    ),
    (
        "Table 7's row outside of the gender binary rests on 50 people (Table 18, and its numbers "
        "are multiples of 1/50): one person is two points. No minimum is set here, as the paper "
        "sets none."
    ),
    (
        "The masks are said to be of 18k people in 17k images (A.4.2) and of 17k people in 14k "
        "images (data card). Only masks of whole persons count here: 11k people (A.5.5), 10,857 by "
        "Table 18."
    ),
    (
        "A person without such a mask is not missed: a detection of them is ignored, whichever "
        "table."
    ),
)
_OPEN_VOCABULARY = (
    _NO_CODE,
    _UNKNOWN,
    _MINIMUM,
    (
        "Section 6.3.1 names trumpeter, backpacker and painter as the classes with the largest "
        "gaps; Table 8 prints drummer in place of painter. By mAR in Table 15 the three that the "
        "text names are the largest among classes with 50 people in each age group (Table 17); "
        "without a minimum they are retailer, flutist and machinist. Table 8 is laid out here by "
        "the former rule."
    ),
    (
        "The row avg of Table 15 is the mean of the classes printed above it in 11 of 18 columns; "
        "for Detic it is not in AR.75 of younger and in all three columns of older people, by up "
        "to 2.1 points. Here it is that mean."
    ),
    "Section 6.3.1 announces mean disparities; Table 15 has mean recalls.",
    "The top 100 predictions of an image are read as 100 of all classes together (A.5.6).",
)
_GROUNDING = (
    (
        "FACET describes its evaluation in words (section 6.3.2, appendix A.5.7); no released code "
        "of it is known to us."
    ),
    _UNKNOWN,
    _MINIMUM,
    (
        "Appendices A.4.2 and A.5.1 evaluate images of one person; A.5.7 those with at most one "
        "person of each class, and counts 7,858 images that this left out; images of several "
        "people are some 10,700 (21k of 31,702 have one). The rule of A.5.7 is used "
        "(images=one-of-every-class); --option images=one-person gives the other."
    ),
    (
        "Table 8's columns of OFA are not of the classes that it names: its backpacker has Table "
        "15's numbers of gardener, drummer those of guitarist, trumpeter those of soldier, AR.50 "
        "and AR.75 exchanged but for older people. So its trumpeter has a lower recall at .50 than "
        "at .75, which cannot be."
    ),
    (
        "Section 6.3.2 says that the largest gap is nearly 27 points, in the class nurse, and that "
        "the best group of a class is the same at all overlaps. In Table 15 the gaps of nurse are "
        "9.7, 8.6 and 14.0, its best group changes, and classes of few people have gaps up to "
        "51.9."
    ),
    (
        "In the three columns of older people the row avg of Table 15b is not the mean of the "
        "classes printed above it, by up to 1.0 point. Here it is that mean."
    ),
)

DISAGREEMENTS: dict[str, tuple[str, ...]] = {
    "classification": _CLASSIFICATION,
    "detection": _DETECTION,
    "segmentation": _SEGMENTATION,
    "segmentation_boxes": _SEGMENTATION,
    "open_vocabulary": _OPEN_VOCABULARY,
    "grounding": _GROUNDING,
}
"""Per protocol: one sentence or two on each place, and on what is done about it."""
