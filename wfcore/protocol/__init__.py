"""What the engine and the workers say to each other: events, commands and the values they carry."""
