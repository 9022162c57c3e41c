"""Two ordinary Django apps that use durable workflows: `orders` and `flights`."""
