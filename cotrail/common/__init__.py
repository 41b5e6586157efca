"""What every room of the domain may use: files, text, addresses. It knows nothing of questions and systems."""
