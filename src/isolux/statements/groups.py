"""Groups in sentences: people or images, never a bare value.

``describe_group`` gives a plural noun phrase: "Black people labelled Female aged 10-19", "images
with lighting = dim". ``_ATTRIBUTE_KINDS`` says how each kind of attribute is put; ``describe_as``
changes that for one attribute. Values are replaced literally and never read as a format.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.formatting import join_words, shorten_name
from isolux.core.grouping import split_intersection
from isolux.groups.binning import ALL_OTHERS
from isolux.groups.unknown_values import KNOWN_SUFFIX, UNKNOWN

_MAX_VALUE_WIDTH = 40  # characters of one value in a sentence


class AttributeKind(NamedTuple):
    """How attributes of one kind are put into words: the first row that fits is taken."""

    names: str
    template: str
    values: str = ".*"


_IMAGE = (
    r"(?!person).*\b(light(ing)?|illumination|luminance|brightness|exposure|contrast|"
    r"blur(ring|red|ry)?|sharpness|weather|time ?of ?day|daytime|season|scene|background|"
    r"resolution|compression|camera)|(image|photo|picture) .*"
)
_RACE = r"race|ethnicity|ethnic group|race (and|or|/)? ?ethnicity"
_SEX = r"(sex|gender)( (presentation|expression|identity|label|group))?"
_AGE = r"age( (group|presentation|range|bin|band|bucket|class|category))?"
_SKIN = r"skin (tone|type)|(natural |apparent )?skin colou?r|fitzpatrick( skin)?( type)?"
# An adjective or two: neither a code, nor a plural, nor "Others" or "two or more races".
_ADJECTIVE = (
    r"(?!.*\b(others?|mixed|more|multi\w*|none|not|prefer|races?|any|alone|rest|all)\b)"
    r"(?!.*(?<!ou)s$)[^\W\d_]{2,}([ _/&-]{1,3}[^\W\d_]+){0,2}"
)
_GENERAL = "{noun} with {title} = {value}{unit}"
_ATTRIBUTE_KINDS = (
    AttributeKind(_IMAGE, "{images} with {title} = {value}"),
    AttributeKind(_RACE, "{value} people", _ADJECTIVE),
    AttributeKind(_AGE, "people aged {value}", r".*\d.*"),
    AttributeKind(f"{_RACE}|{_SEX}|{_AGE}", "people labelled {value}"),
    AttributeKind(_SKIN, "people with {name} {value}", r"\d+([-–]\d+)?|[iv]+"),
    AttributeKind(r"(country|region|continent)( of .*)?|nationality", "{noun} from {value}"),
    AttributeKind("ancestry", "people with {value} ancestry"),
    AttributeKind("household income,.*", "{noun} from households with an income of {value}{unit}"),
    AttributeKind("category|class|label|object", "{noun} labelled {value}"),
    AttributeKind(".*", _GENERAL),
)
"""Kinds of attribute, the more particular first. ``{noun}``: what the dataset's rows are;
``{title}``: the dataset's words for the attribute; ``{name}``: those without whose they are."""

_JUDGEMENT_PREFIX = re.compile(
    r"^(self reported|perceived|apparent|annotated|inferred|predicted) +"
)
_WORD_ORDER = ("labelled", "aged", "from", "with", "of")
"""In which order what follows the noun is put, by its first word."""
_SHARED_WORDS = ("labelled", "with")
"""Words that are said once for several: labelled Female and young."""


class _Piece(NamedTuple):
    before: str
    noun: str
    after: str


@dataclass(frozen=True, slots=True)
class GroupPhrases:
    """What a run's groups are called in a sentence.

    Parameters
    ----------
    terms : mapping of str to str
        Attribute to the dataset's words for it.
    label_source : str
        Where the labels come from: nobody is "labelled" by what they reported themselves.
    noun : str
        What the dataset's rows are, in the plural: people, photos, objects.
    units : mapping of str to str
        Attribute to the unit of its numbers.
    image_attributes : collection of str
        Attributes of images.
    templates : mapping of str to str
        Attribute to the template that the user chose (``--option describe_as=…``).
    values : mapping of (str, str) to sequence of str
        Attribute and group, as tables print it, to the group's values.
    """

    terms: Mapping[str, str] = field(default_factory=dict)
    label_source: str = ""
    noun: str = "people"
    units: Mapping[str, str] = field(default_factory=dict)
    image_attributes: Collection[str] = ()
    templates: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)

    def describe_table_group(self, attribute: str | None, group: str) -> str:
        """Call a group as tables name it: ``disparities`` and ``findings`` have no values."""
        values = self.values.get((attribute or "", group))
        return (
            shorten_name(group)
            if attribute is None or values is None
            else self.describe_group(attribute, values)
        )

    def describe_group(self, attribute: str, values: Sequence[str]) -> str:
        """Call a group of an attribute or intersection, by its values.

        Examples
        --------
        >>> phrases = GroupPhrases()
        >>> phrases.describe_group("race*sex*age", ["Black", "Female", "10-19"])
        'Black people labelled Female aged 10-19'
        >>> phrases.describe_group("lighting", ["dim"]), phrases.describe_group("hat", ["1.0"])
        ('images with lighting = dim', 'people with hat = 1')
        """
        pairs = zip(split_intersection(attribute), values, strict=True)
        pieces = [
            self._build_phrase(name.removesuffix(KNOWN_SUFFIX), group_value)
            for name, group_value in pairs
        ]
        return _join_attribute_phrases(pieces, self.noun)

    def _build_phrase(self, name: str, group_value: str) -> _Piece:
        title = self.terms.get(name, name.replace("_", " "))
        short = _SCALE.sub("", title.partition(",")[0])
        group_value = _INTEGER_PATTERN.sub(r"\1", group_value)
        user_template = self.templates.get(name)
        template = user_template or self._choose_template(name, title, group_value)
        group_value = shorten_name(group_value, _MAX_VALUE_WIDTH)
        words = {
            "value": f"“{group_value}”" if re.search(r" (and|or) ", group_value) else group_value
        }
        if not user_template:
            unit = self.units.get(name, "")
            words |= {
                "title": title,
                "name": _strip_judgement_and_scale(title),
                "unit": f" {unit}" if unit else "",
            }
        nouns = "|".join(map(re.escape, ("people", "images", self.noun)))
        noun_match = re.search(rf"(?<!\w)({nouns})(?!\w)", template)
        if group_value == UNKNOWN:
            return _Piece("", noun_match[0] if noun_match else self.noun, f"of unknown {short}")
        if not noun_match:
            return _Piece("", _fill_template(template, words), "")
        before, after = template[: noun_match.start()].strip(), template[noun_match.end() :].strip()
        return _Piece(_fill_template(before, words), noun_match[0], _fill_template(after, words))

    def _choose_template(self, name: str, title: str, group_value: str) -> str:
        titles = _strip_judgement_and_scale(title), name.replace("_", " ").lower()
        template = next(
            attribute_kind.template
            for attribute_kind in _ATTRIBUTE_KINDS
            if any(re.fullmatch(attribute_kind.names, text, re.DOTALL) for text in titles)
            and (
                group_value == UNKNOWN
                or re.fullmatch(attribute_kind.values, group_value, re.IGNORECASE | re.DOTALL)
            )
        )
        self_reported = "self-reported" in (self.label_source, titles[1].replace(" ", "-")[:13])
        noun = "images" if name in self.image_attributes else self.noun
        # Of rows that are no people the dataset says which attributes are those of images.
        images = "images" if noun == "people" else noun
        if group_value == ALL_OTHERS or (self_reported and "labelled" in template):
            template = _GENERAL
        return template.replace("{noun}", noun).replace("{images}", images)


_SCALE = re.compile(r" *\(.*\)$")  # (Fitzpatrick)
_INTEGER_PATTERN = re.compile(r"^(-?\d+)\.0+$")


def _strip_judgement_and_scale(title: str) -> str:
    """Call an attribute without whose judgement or which scale it is."""
    text = _SCALE.sub("", title.lower()).replace("-", " ")
    return _JUDGEMENT_PREFIX.sub("", text)


def _fill_template(template: str, words: Mapping[str, str]) -> str:
    """Fill a template in one pass, so that no value is read as a template."""
    return re.sub(r"\{(\w+)\}", lambda slot: words.get(slot[1], slot[0]), template)


def _join_attribute_phrases(pieces: Sequence[_Piece], noun: str) -> str:
    """Join the phrases of an intersection's attributes: people "in" images."""
    images = [piece for piece in pieces if piece.noun == "images" != noun]
    people = [piece for piece in pieces if piece.noun in ("people", noun)]
    phrases = [piece.noun for piece in pieces if piece.noun not in ("people", "images", noun)]
    if people:
        of_people = any(piece.noun == "people" for piece in people)
        phrases.append(_join_phrases_of_noun(people, "people" if of_people else noun))
    first = [" among ".join(phrases)] if phrases else []
    return " in ".join([*first, *([_join_phrases_of_noun(images, "images")] if images else [])])


def _join_phrases_of_noun(pieces: Sequence[_Piece], noun: str) -> str:
    """Join what stands before and after one noun."""
    afters: dict[str, list[str]] = {}
    for piece in pieces:
        word = piece.after.partition(" ")[0]
        afters.setdefault(word, []).append(piece.after)
    ordered = sorted(
        afters,
        key=lambda word: _WORD_ORDER.index(word) if word in _WORD_ORDER else len(_WORD_ORDER),
    )
    texts = []
    for word in ordered:
        first, *other_texts = afters[word]
        if word in _SHARED_WORDS:
            other_texts = [text.removeprefix(f"{word} ") for text in other_texts]
        texts.append(join_words([first, *other_texts], conjunction="and"))
    return " ".join(filter(None, [*(piece.before for piece in pieces), noun, *texts]))


def read_group_phrases(run: Run) -> GroupPhrases:
    """Read from a run's record and tables how to call its groups."""
    dataset = run.record.get("dataset") or {}
    by = (run.record.get("spec") or {}).get("by") or ()
    names = [name for entry in by for name in split_intersection(str(entry))]
    images = run.attributes.filter(pl.col("unit_kind").cast(pl.String) == "image")
    groups = run.group_metrics.filter(pl.col("attribute").is_not_null())
    unique = groups.select("attribute", "group", "values").unique()
    return GroupPhrases(
        terms=dict(dataset.get("terms") or ()),
        label_source=str(dataset.get("label_source") or ""),
        noun=str(dataset.get("noun") or "people"),
        units=dict(dataset.get("units") or ()),
        image_attributes=frozenset(images["attribute"].unique().cast(pl.String)),
        templates=parse_group_templates(
            (run.record.get("spec") or {}).get("describe_as") or (), names
        ),
        values={(attribute, group): values for attribute, group, values in unique.iter_rows()},
    )


def parse_group_templates(texts: Sequence[str], attributes: Collection[str]) -> dict[str, str]:
    """Read ``describe_as``: an attribute to the template of its groups.

    Examples
    --------
    >>> parse_group_templates(["race=people labelled {value}"], ["race"])
    {'race': 'people labelled {value}'}
    """
    templates: dict[str, str] = {}
    for text in texts:
        starts = [name for name in attributes if text.startswith(f"{name}=")]
        name = max(starts, key=len, default=text.partition("=")[0])
        template = text[len(name) + 1 :].strip()
        if not starts:
            raise SpecError(
                f"describe_as is about {name!r}, which is not audited",
                expected="ATTRIBUTE=WORDS, of " + (", ".join(attributes) or "an attribute in --by"),
                found=repr(text),
                hint="name the attribute as --by does",
            )
        if "{value}" not in template:
            raise SpecError(
                f"describe_as does not say where the value of {name!r} stands",
                expected="words with {value}, which is replaced by the group's value",
                found=repr(text),
                hint=f'for example --option describe_as="{name}=people labelled {{value}}"',
            )
        if name in templates:
            raise SpecError(
                f"describe_as names {name!r} twice", expected="it once", found=repr(text)
            )
        templates[name] = template
    return templates
