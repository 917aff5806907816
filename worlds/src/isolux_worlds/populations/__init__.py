"""Tables of people and models: a population, worlds drawn from it, the true rate of every group."""
