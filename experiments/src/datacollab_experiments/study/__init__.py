"""How often what a study says holds."""
