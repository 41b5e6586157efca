"""The papers' protocols, carried out."""
