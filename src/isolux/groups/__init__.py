"""Groups of people: who is in which, by attribute, bin, merge and intersection.

``option_parsing`` reads an audit's settings, ``membership`` applies them to the attributes table,
``sort_groups_for_display`` sorts groups for display.
"""

from isolux.groups.display_order import sort_groups_for_display
from isolux.groups.membership import Membership, build_membership
from isolux.groups.option_parsing import check_references, read_groupings, read_references

__all__ = [
    "Membership",
    "build_membership",
    "check_references",
    "read_groupings",
    "read_references",
    "sort_groups_for_display",
]
