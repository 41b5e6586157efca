"""Ports: the interfaces that engines implement and through which actions are carried out."""
