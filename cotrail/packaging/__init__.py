"""What is made when the package is built: `backend`, which builds it, and the modules that `clients` writes before."""
