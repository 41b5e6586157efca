"""The viewer: pages that show why each answer came out, made from operations, and knowing nothing of HTTP."""
