"""Made-up cases, the official evaluation scripts' scores for them, and the script that recorded these."""
