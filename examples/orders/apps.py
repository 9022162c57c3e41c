from django.apps import AppConfig


class OrdersConfig(AppConfig):
    name = "examples.orders"
    label = "orders"
    verbose_name = "Orders (example)"
    default_auto_field = "django.db.models.BigAutoField"
