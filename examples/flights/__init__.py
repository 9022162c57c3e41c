"""A year of flights, summed up month by month in parallel, as a report and a plot."""
