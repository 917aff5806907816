"""Where FHIBE's text and the evaluation tool of its authors disagree, and what is done here.

One tuple of sentences a protocol; the report prints them as notes. "The tool" is the software that
the authors released for the dataset. The paper's tables are in a supplement that is not at hand,
so nothing here could be checked on printed numbers.
"""

from __future__ import annotations

_SUPPLEMENT = (
    "The paper's tables are in its supplement, which was not at hand: the tables here are of the "
    "numbers that its Methods compare (medians) and that the tool's reports print (mean, median, "
    "size)."
)
_MIN_GROUP_SIZE = (
    "The text looks at groups of at least ten subjects, the tool's tests at groups of at least 20 "
    "scores, which may be two people's photos. Ten subjects hold here, and people are resampled."
)
_ANCESTRY = (
    "By the text a person who named a continent alone counts in each of its subregions, so "
    "attribute ancestry has subregions; the tool counts the answers as they stand and its reports "
    "show continents, which is ancestry_region here."
)
_ATTRIBUTES = (
    "The text compares groups of every attribute; the tool's default is pronoun, age, apparent "
    "skin colour and ancestry with all their intersections (here: --by pronoun --by "
    '"pronoun*age_group" …). Skin as hue and luminance, which the tool lists, is in no released '
    "table that is known to us."
)
_MULTIPLICITY = (
    "The text divides its level by the pairs of one attribute; the audit corrects over all that "
    "was looked at, which is stricter. Fewer --by make a smaller family."
)
_GROUP_NOTES = (_SUPPLEMENT, _MIN_GROUP_SIZE, _ANCESTRY, _ATTRIBUTES, _MULTIPLICITY)
_MATCHING = (
    "The text names the standard average recall, where a prediction finds one person; the tool "
    "takes each person's best overlap, so one prediction may find two people. The former holds; "
    "--matching best-overlap gives the tool's."
)
_ALL_PREDICTIONS = (
    "Neither says how many predictions of an image take part; all do here, as in the tool. Its "
    "manual asks for an overlap above the threshold, its code and COCO for one at or above it."
)
_HEAD_LENGTH = (
    "The text measures keypoints by half the length of the head and cites MPII, whose head has a "
    "box of its own; FHIBE has a face box, and the tool takes its diagonal. So does this audit; "
    "--option scale=head-length takes .6 of the diagonal, as MPII does with the head's."
)
_FRACTIONS = (
    "The text reads PCK at .5; the tool's default is its mean over .1, .2, …, .9 (--option "
    "fractions=0.1,0.2,… gives each of the nine)."
)
_GIVEN_BOXES = (
    "Poses of the paper were drawn in people's annotated boxes, and the tool pairs them with "
    "people in the order of the file. Here they are matched by similarity (OKS), people of an "
    "image together, and a person's area is that of their box, where the tool takes the mask's."
)
_KEYPOINT_SET = (
    "FHIBE annotates 33 keypoints; the tool judges the 17 that COCO has too, which models of poses "
    "give (--data-option keypoint_set=fhibe: all 33, and --option sigmas=… then)."
)
_OF_PARTS = (
    "FHIBE annotates parts and no whole people: a person is the union of all parts, bags and "
    "clothes among them, as in the tool. The tool cuts corners to whole pixels before it fills "
    "them; COCO's rule fills them here, so outlines differ by up to a pixel."
)
_CATEGORIES = (
    "The text averages F1 over all mask categories, the tool over those annotated in a face. By "
    "the text a part that a model draws and that is not there counts 0; one that is neither "
    "annotated nor drawn has no F1 and is left out. --option classes=present gives the tool's."
)
_BACKGROUND = (
    "The tool counts the background as a category, the text does not say; it is not counted here, "
    "for it is the easiest (--option background=true)."
)
_EARS = (
    "CelebAMask-HQ's categories have ears, which FHIBE counts as skin: the tool turns drawn ears "
    "into skin, and so does this audit. Necklaces and earrings, which FHIBE does not annotate "
    "either, are no category here; in the tool they never are annotated in a face, so not either."
)
_SAMPLED_PAIRS = (
    "The text samples pairs within each subgroup and does not say how many; the tool draws at most "
    "3,000 genuine and 3,000 impostor pairs, of which a false accept rate of .001 leaves three. So "
    "a value rests on three pairs, is marked so and has no interval. --option max_per_group=null "
    "compares all pairs of a group and gives intervals from 30,000 on."
)
_THRESHOLD_FOLDS = (
    "The tool sets the threshold on nine tenths of a group's pairs, between thresholds .001 apart, "
    "and reads the rate on the last tenth, ten times; where the rate cannot be reached it takes "
    "the cosine 0. Here it is read on all of the group's pairs, and not at all below 1,000 "
    "impostor pairs."
)
_EXCLUDED_PHOTOS = (
    "The tool leaves out faces from photos of two people and people with one photo, which the text "
    'does not say: --only "multiple_subjects=0" does the former; the latter lack genuine pairs '
    "anyway, and here are compared as impostors."
)
_WHICH_SKIN = (
    "Impostors' skin colour differs by one of six levels at most; whether the natural or the "
    "apparent colour is not said. The apparent one is taken (--option near=natural_skin_color)."
)
_HARD_PAIRS = (
    "The paper has 15,474 genuine and 4,945,896 hard impostor pairs of the whole dataset, for "
    "patterns of errors; it does not read a rate by group from them. Here all such pairs of a "
    "group are compared, none drawn."
)
_MORE_PRONOUNS = (
    "Of people with several pronouns the text does not say when two have the same; one in common "
    "is enough here."
)
_NO_MEDIAN = "A group has one rate and no scores: no median, and the paper leaves it out of tests."
_DIRECTION = (
    "LPIPS is a distance: lower is better. The tool calls the group with the lower median the "
    "worst in any metric, so its best group by LPIPS is the worst one."
)
_IMAGE_SIZE = (
    "The text gives no size; the tool brings both pictures to 256 × 256 pixels, super-resolved "
    "ones too, and so does this audit (--option size_px=0 leaves them as they are)."
)
_METRIC_TYPES = (
    "LPIPS and PSNR are of pictures, the cosine is of embeddings (by CurricularFace in the paper): "
    "an audit of each, or of values computed elsewhere. PSNR has a floor of 1e-8 under its error, "
    "as the tool's library."
)
_WIDERFACE = (
    "The Methods leave out faces of which gender, age or skin is Not Sure: 8,519 faces in 2,856 "
    "files, as here. The others, and those without demographics, take part in the matching here "
    "and are not judged; the paper does not say whether a detection may find them."
)
_PERCEIVED_GROUPS = (
    "These groups are what annotators perceived, FHIBE's are what people say of themselves: "
    "differences between the datasets are not only the pictures'."
)
_NO_SUBJECTS = "No subjects are known here: the least of ten is of images, which are resampled."
_FACET_COUNTS = (
    "The Methods use 49,500 boxes and 17,000 masks of 31,700 images; FACET has 49,551 people in "
    "31,702 images, and a mask of the whole person for 10,857 of them (its Table 18): 17,000 may "
    "count people with a mask of any kind. Whole people are judged here."
)
_PROMPT_WORDS = (
    "The paper's prompts are in its Supplementary Information H, which was not at hand: those here "
    "are isolux's own, of the same form (--prompts FILE has others). Figures of other prompts are "
    "not to be compared: two public kits give 43.7 % and 73.7 % for one published figure."
)
_NEAREST_PROMPT = (
    "The text assigns the label of the one description that a photo is nearest to, which is "
    "several=nearest of the model; CLIP's own way averages a value's descriptions (the default)."
)
_VARIANTS = (
    "Photos with several people show each of them in turn: isolux crop --recipe whole, "
    "person-black, person-blurred, background-black. FHIBE's masks are the union of its parts."
)
_PROMPT_CHOICE = (
    "The text keeps the prompts with the most answers that are not empty; here answers that "
    "decline count as none, too. It chooses on the photos that it reports on, as is the default "
    "here (--choose-on 0.2 does not)."
)
_ANSWER_RULES = (
    "The text reads pronoun, occupation and reason by regular expressions, and toxic answers by "
    "keywords, that it does not print: isolux's own rules are files, and so is its small lexicon "
    "(--lexicon FILE)."
)
_NO_TESTS = (
    "The Methods name no test of these shares; the audit's tests and intervals are the house's, "
    "for shares of people in clusters."
)
_COMPARISON_NOTES = (_SUPPLEMENT, _MIN_GROUP_SIZE, _MATCHING, _NO_SUBJECTS, _PERCEIVED_GROUPS)

DISAGREEMENTS: dict[str, tuple[str, ...]] = {
    "detection": (*_GROUP_NOTES, _MATCHING, _ALL_PREDICTIONS),
    "segmentation": (*_GROUP_NOTES, _MATCHING, _ALL_PREDICTIONS, _OF_PARTS),
    "keypoints": (*_GROUP_NOTES, _HEAD_LENGTH, _FRACTIONS, _GIVEN_BOXES, _KEYPOINT_SET),
    "face_detection": (*_GROUP_NOTES, _MATCHING, _ALL_PREDICTIONS),
    "face_parsing": (*_GROUP_NOTES, _CATEGORIES, _BACKGROUND, _EARS),
    "face_verification": (
        _SUPPLEMENT,
        _MIN_GROUP_SIZE,
        _ANCESTRY,
        _SAMPLED_PAIRS,
        _THRESHOLD_FOLDS,
        _EXCLUDED_PHOTOS,
        _NO_MEDIAN,
    ),
    "face_verification_hard": (
        _SUPPLEMENT,
        _MIN_GROUP_SIZE,
        _ANCESTRY,
        _HARD_PAIRS,
        _WHICH_SKIN,
        _MORE_PRONOUNS,
        _EXCLUDED_PHOTOS,
        _NO_MEDIAN,
    ),
    "reconstruction": (*_GROUP_NOTES, _DIRECTION, _IMAGE_SIZE, _METRIC_TYPES),
    "super_resolution": (*_GROUP_NOTES, _DIRECTION, _IMAGE_SIZE),
    "zero_shot": (
        _SUPPLEMENT,
        _MIN_GROUP_SIZE,
        _ANCESTRY,
        _PROMPT_WORDS,
        _NEAREST_PROMPT,
        _VARIANTS,
        _NO_TESTS,
    ),
    "question_answering": (
        _SUPPLEMENT,
        _MIN_GROUP_SIZE,
        _ANCESTRY,
        _PROMPT_WORDS,
        _PROMPT_CHOICE,
        _ANSWER_RULES,
        _VARIANTS,
        _NO_TESTS,
    ),
    "face_detection_on_widerface": (*_COMPARISON_NOTES, _WIDERFACE),
    "detection_on_facet": (*_COMPARISON_NOTES, _FACET_COUNTS),
    "segmentation_on_facet": (*_COMPARISON_NOTES, _FACET_COUNTS),
}
"""Per protocol: one sentence or two on each place, and on what is done about it."""
