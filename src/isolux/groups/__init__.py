"""Groups of people: who is in which, by attribute, bin, merge and intersection.

``groupings`` reads an audit's settings, ``membership`` applies them to the attributes table,
``natural_order`` sorts groups for display.
"""

from isolux.groups.membership import Membership, membership
from isolux.groups.ordering import natural_order
from isolux.groups.settings import check_references, groupings, references

__all__ = [
    "Membership",
    "check_references",
    "groupings",
    "membership",
    "natural_order",
    "references",
]
