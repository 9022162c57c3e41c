"""An app whose workflows, activities and tasks the tests run in real workers."""
