from django.apps import AppConfig


class FlightsConfig(AppConfig):
    name = "examples.flights"
    label = "flights"
    verbose_name = "Flights (example)"
    default_auto_field = "django.db.models.BigAutoField"
