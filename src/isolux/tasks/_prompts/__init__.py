"""People named by a phrase: what grounding and open vocabulary share."""
