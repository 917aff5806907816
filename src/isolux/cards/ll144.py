"""Tables of New York City's Local Law 144: selection or scoring rates and their impact ratios.

By sex, by race and ethnicity, and by both, as the rules of the Department of Consumer and Worker
Protection ask (6 RCNY § 5-301): how many were assessed, the rate, its ratio to the highest rate,
and how many are of an unknown category. Categories below 2 % may be left out of the ratios; the
user says which and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from isolux.cards._content import CardContent, number_column
from isolux.cards._document import Card, CardBlock, CardColumn, CardSection, CardTable, Paragraph
from isolux.cards._facts import CardFacts, build_fact_fields
from isolux.cards._run_source import RunSource
from isolux.cards._selection import (
    CategoryRates,
    RateCategory,
    binarise_at_median,
    compute_selection_rates,
)
from isolux.core.containers import Run
from isolux.core.counts import COUNTS
from isolux.core.errors import SpecError, UnknownNameError, refuse_unknown_names
from isolux.core.formatting import format_class_with_target, read_target_term
from isolux.core.info import CardInfo, Reference
from isolux.core.survey_sample import is_survey_sample
from isolux.report.wording import join_with_and
from isolux.statements.numbers import format_count, format_interval, format_with_unit

_MAX_EXCLUDED_SHARE = 0.02
"""Share of the data below which a category may be left out (6 RCNY § 5-301(d))."""
_SEX_NAMES = (
    "sex",
    "gender",
    "perceived_gender",
    "perceived_gender_presentation",
    "gender_presentation",
    "perceived_sex",
)
_RACE_NAMES = (
    "race",
    "race_ethnicity",
    "ethnicity",
    "perceived_race",
    "perceived_race_ethnicity",
    "ancestry",
)

INFO = CardInfo(
    title="Local Law 144 tables",
    summary="New York City's bias audit tables: rates and impact ratios by sex, race and both.",
    references=(
        Reference(
            "ll144-rules",
            "New York City Department of Consumer and Worker Protection. Use of Automated "
            "Employment Decision Tools. Rules of the City of New York, title 6, §§ 5-300 to 5-304.",
            "definitions in § 5-300; calculations in § 5-301; summary of results in § 5-303",
            "https://codelibrary.amlegal.com/codes/newyorkcity/latest/NYCrules/0-0-0-138530",
        ),
        Reference(
            "eeo-1",
            "29 CFR § 1602.7, and Component 1 of the EEO-1 report that it asks for: the categories "
            "of sex, race and ethnicity. 29 CFR part 1607 for selection rates.",
            "",
            "https://www.ecfr.gov/current/title-29/subtitle-B/chapter-XIV/part-1602",
        ),
    ),
    facts=build_fact_fields(
        aedt_name="the automated employment decision tool",
        distribution_date="when the audited tool was first distributed",
        auditor="the independent auditor",
        audit_date="when the bias audit was done",
        data_source="historical or test data, whose, and why not historical",
        data_explanation="what the data are and how they were obtained",
        sex_attribute="the attribute that holds sex categories",
        race_attribute="the attribute that holds race and ethnicity",
        categories_left_out="categories below 2 % that are left out of the impact ratios",
        exclusion_justification="why they are left out",
    ),
    statement=(
        "These are the calculations of 6 RCNY § 5-301, made from one audit. They are not a bias "
        "audit by an independent auditor, not legal advice, and not a claim that the law is "
        "complied with. A ratio of rates does not tell whether the right people were selected."
    ),
)


def card(source: RunSource, facts: CardFacts) -> Card:
    """Fill the tables.

    Parameters
    ----------
    source : RunSource
        A finished run with a metric ``selection_rate``, or of the task ``number``: then a scoring
        rate is reckoned, the share above the median of the full sample.
    facts : CardFacts
        ``sex_attribute`` and ``race_attribute`` name attributes of the run where their names do not
        tell; ``categories_left_out`` names categories below 2 %.

    Returns
    -------
    Card

    Raises
    ------
    SpecError
        The run has no such metric, is published, weighted or counted, or a category that is left
        out is not below 2 %.
    UnknownNameError
        The run has no such attribute or category.

    Examples
    --------
    >>> [ask.key for ask in INFO.facts if "attribute" in ask.key]
    ['sex_attribute', 'race_attribute']
    """
    content = CardContent("ll144", source, facts)
    stated_facts = content.stated_facts
    _check_run_is_eligible(source.run)
    sex, race = _find_sex_and_race_attributes(content)
    blocks = (*_explain_deviations(content, sex, race), *_build_rate_tables(content, sex, race))
    excluded_blocks: tuple[CardBlock, ...] = (
        Paragraph("None: every category has an impact ratio."),
    )
    if facts.joined_text("categories_left_out"):
        excluded_blocks = stated_facts("categories_left_out", "exclusion_justification")
    return content.build_card(
        CardSection("Rates and impact ratios", blocks, "6 RCNY § 5-301(b) to (d)"),
        CardSection("What this cannot say", (content.build_limits_block(),)),
        CardSection(
            "The tool and the audit",
            stated_facts("aedt_name", "distribution_date", "auditor", "audit_date"),
            "6 RCNY § 5-303",
        ),
        CardSection(
            "The data",
            (content.build_data_paragraph(), *stated_facts("data_source", "data_explanation")),
            "6 RCNY §§ 5-302 and 5-303",
        ),
        CardSection("Categories left out", excluded_blocks, "6 RCNY § 5-301(d)"),
    )


def _check_run_is_eligible(run: Run) -> None:
    refusals = (
        (
            run.record.get("publish_min"),
            "the run is cut for publishing",
            "make the card of the whole run; it is the one that is not published",
        ),
        (
            is_survey_sample(run.record),
            "the run's people represent others, through weights or strata",
            "audit again without --weight and --strata",
        ),
        (
            COUNTS in run.evidence,
            "the run's people were counted in shards",
            "audit the people as a table in one file",
        ),
    )
    for is_refused, problem, hint in refusals:
        if is_refused:
            raise SpecError(
                f"{problem}, and these tables count every single one",
                expected="a run with a row for each person assessed",
                hint=hint,
            )


def _find_sex_and_race_attributes(content: CardContent) -> tuple[str, str]:
    """Find the attributes of sex, and of race and ethnicity; empty: the run has none."""
    attribute_names = content.source.run.attributes["attribute"].unique().sort().to_list()
    attributes = []
    for key, words in (("sex_attribute", _SEX_NAMES), ("race_attribute", _RACE_NAMES)):
        name = content.facts.joined_text(key)
        if name and name not in attribute_names:
            raise UnknownNameError("attribute of this run", name, attribute_names, where=key)
        attributes.append(name or next((word for word in words if word in attribute_names), ""))
    if not any(attributes):
        raise SpecError(
            "no attribute of this run is named as sex, race or ethnicity are",
            expected="sex_attribute and race_attribute in --facts FILE",
            found=join_with_and(attribute_names) or "a run without attributes",
        )
    return attributes[0], attributes[1]


def _explain_deviations(content: CardContent, sex: str, race: str) -> Iterator[CardBlock]:
    """Say what keeps these tables from being those of the rule."""
    missing = [word for word, name in (("sex", sex), ("race and ethnicity", race)) if not name]
    if missing:
        yield Paragraph(
            f"This audit has no categories of {join_with_and(missing)}: the rule asks for sex, for"
            " race and ethnicity, and for both together."
        )
    audited = content.summary.audited
    if audited.cluster and audited.n_clusters < audited.n_units:
        yield Paragraph(
            f"The rule counts applicants. Here {format_count(audited.n_units)} rows are of "
            f"{format_count(audited.n_clusters)} clusters ({audited.cluster}): one with several"
            " rows "
            "counts several times. Intervals take that into account, counts and ratios do not."
        )
    yield Paragraph(
        "The rule asks for the categories of Component 1 of the EEO-1 report. The categories below "
        "are those of the data, under the data's names."
    )


def _build_rate_tables(content: CardContent, sex: str, race: str) -> Iterator[CardBlock]:
    by = [sex, race, f"{sex}*{race}"] if sex and race else [sex or race]
    run = content.source.run
    scores = run.scores
    models = scores["model"].unique(maintain_order=True).to_list()
    scores = scores.filter(model=models[0]) if models else scores
    selection_scores = scores.filter(metric="selection_rate")
    excluded = content.facts.texts.get("categories_left_out", ())
    if selection_scores.height:
        target = read_target_term(run.record)
        for label in selection_scores["label"].unique(maintain_order=True).to_list():
            class_scores = selection_scores.filter(pl.col("label").eq_missing(pl.lit(label)))
            name = (
                format_class_with_target(label, target)
                if label is not None
                else "the positive class"
            )
            yield from _build_score_rate_tables(
                content, class_scores, by, excluded, f"Selected: the answer is {name}"
            )
        return
    numbers = scores.filter(metric="mean")
    if str(run.record.get("task")) != "number" or not numbers.height:
        raise SpecError(
            "this run has neither selection rates nor scores",
            expected="an audit with --positive CLASS --metric selection_rate, or --task number",
            found=join_with_and(scores["metric"].unique().sort().to_list()) or "no scores",
        )
    above_scores, median = binarise_at_median(numbers)
    text = f"Scored above the median of the full sample, {median:g}"
    yield from _build_score_rate_tables(content, above_scores, by, excluded, text, "Scoring rate")


def _build_score_rate_tables(
    content: CardContent,
    scores: pl.DataFrame,
    by: Sequence[str],
    excluded: Sequence[str],
    description: str,
    rate_name: str = "Selection rate",
) -> Iterator[CardBlock]:
    all_rates = compute_selection_rates(content.source.run, scores, by, excluded)
    _refuse_large_exclusions(all_rates, excluded)
    n_missing = scores["value"].null_count()
    yield Paragraph(
        f"{description}. {format_count(scores.height - n_missing)} were assessed"
        + (
            f"; {format_count(n_missing)} more have no answer and are in no table."
            if n_missing
            else "."
        )
    )
    for rates in all_rates:
        yield _build_rate_table(rates, rate_name, description, content.summary.audited.percent)


def _refuse_large_exclusions(all_rates: Sequence[CategoryRates], excluded: Sequence[str]) -> None:
    shares = {category.name: category.share for rates in all_rates for category in rates.categories}
    for name in excluded:
        refuse_unknown_names("category", [name], shares, where="categories_left_out")
        if shares[name] >= _MAX_EXCLUDED_SHARE:
            raise SpecError(
                f"{name} may not be left out of the impact ratios",
                expected="a category below 2 % of the data (6 RCNY § 5-301(d))",
                found=f"{100 * shares[name]:.1f} %",
                where="categories_left_out",
            )


def _build_rate_table(
    rates: CategoryRates, rate_name: str, description: str, percent: str
) -> CardTable:
    best_category = next(
        (category for category in rates.categories if category.name == rates.highest_category), None
    )
    unknown = (
        f"{format_count(rates.n_unknown)} of {format_count(rates.n_total)} assessed are of an"
        " unknown category and are not included."
    )
    notes = [unknown]
    if best_category is not None:
        notes.append(
            f"The highest rate is that of {best_category.name}, n ="
            f" {format_count(best_category.n)}."
        )
    small_categories = [
        category.name
        for category in rates.categories
        if category.share < _MAX_EXCLUDED_SHARE and not category.is_excluded
    ]
    if small_categories:
        notes.append(
            "Below 2 % of the data, so that they may be left out: "
            f"{join_with_and(small_categories)}."
        )
    if sum(category.n for category in rates.categories) + rates.n_unknown > rates.n_total:
        notes.append("Some people are in several categories, and count in each.")
    rate = "selected" if rate_name == "Selection rate" else "above the median"
    return CardTable(
        f"{rate_name} by {rates.attribute.replace('_', ' ').replace('*', ' × ')}",
        (
            CardColumn("Category"),
            *map(
                number_column,
                (
                    "Assessed (n)",
                    "Share of data",
                    rate.capitalize(),
                    f"{rate_name} ({percent} interval)",
                    f"Impact ratio ({percent} interval)",
                ),
            ),
        ),
        tuple(_format_category_cells(category) for category in rates.categories),
        f"scores.parquet with attributes.parquet: {rates.attribute.replace('*', ' and ')}, counted "
        f"again; {description[:1].lower()}{description[1:]}",
        tuple(notes),
    )


def _format_category_cells(category: RateCategory) -> tuple[str, ...]:
    rate = format_with_unit(category.rate)
    if category.low is not None:
        rate += f" ({format_interval(category.low, category.high)})"
    ratio = (
        "left out"
        if category.is_excluded
        else "–"
        if category.ratio is None
        else f"{category.ratio:.3f}"
    )
    if category.ratio_low is not None:
        ratio += f" ({category.ratio_low:.3f} to {category.ratio_high:.3f})"
    return (
        category.name,
        format_count(category.n),
        f"{100 * category.share:.1f} %",
        format_count(category.n_selected),
        rate,
        ratio,
    )
