"""Ports: the interfaces that engines implement and that actions are carried out by."""
