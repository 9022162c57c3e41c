"""One request and one answer for each call of the service, named as Temporal's RPCs."""
