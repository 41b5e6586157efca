"""Language models behind a server: vLLM, SGLang, llama.cpp, hosted ones."""
