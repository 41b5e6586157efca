"""Language models in this process, through transformers and PyTorch."""
