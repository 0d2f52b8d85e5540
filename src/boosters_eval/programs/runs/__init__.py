"""The runs in a home: listed, shown, opened, verified and removed."""
