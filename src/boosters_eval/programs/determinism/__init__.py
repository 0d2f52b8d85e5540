"""Does the same training give the same model? One library, asked in many ways."""
