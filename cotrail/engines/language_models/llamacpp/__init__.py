"""Language models in this process, through llama.cpp (xllamacpp)."""
