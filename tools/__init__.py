"""Tools of the project: private servers, demo."""
