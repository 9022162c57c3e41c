from django.contrib import admin

from examples.orders.models import LedgerEntry, Order, Product


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    list_display = ("sku", "name", "price_cents", "available")


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ("number", "product", "quantity", "status", "tracking", "placed_at")
    list_filter = ("status",)
    list_select_related = ("product",)
    search_fields = ("number",)


@admin.register(LedgerEntry)
class LedgerEntryAdmin(admin.ModelAdmin):
    list_display = ("order_number", "step", "attempt", "started_at", "ended_at", "failure")
    list_filter = ("step",)
    search_fields = ("order_number",)

    def has_add_permission(self, request):
        return False

    def has_change_permission(self, request, obj=None):
        return False
